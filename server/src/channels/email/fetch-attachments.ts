// Fetches the attachments of emails from the customer's servers: once for all recipients of a message, cached for a
// while.

import type { Clock } from '../../lib/clock.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import type { ChannelOutcome } from '../channel.ts'
import { createLaneSemaphore, createSemaphore } from '../gate.ts'
import type { Outbound, OutboundResult } from '../outbound.ts'
import type { AttachmentSource, EmailAttachment } from './message.ts'
import { encodeBase64 } from './mime/base64.ts'

export type AttachmentFetcher = {
  /**
   * The files of a message are fetched only once, and no app can use all slots. Waits for a moment; if the files are
   * not there by then, the caller has to ask again. Never rejects.
   */
  fetch(appId: AppId, messageId: string, asked: readonly AttachmentSource[]): Promise<FetchedAttachments>
}

export type FetchedAttachments = readonly EmailAttachment[] | Extract<ChannelOutcome, { kind: 'retry' | 'failed' }>

export type AttachmentFetcherSettings = {
  outbound: Pick<Outbound, 'request'>
  clock: Clock
  log: Pick<Log, 'warn'>
  /** The limit for all files of an email together, before they are encoded. 0 forbids attachments. */
  maxBytes: number
  /** The limit for cached files, encoded. */
  keptBytes?: number | undefined
  patienceMs?: number | undefined
}

const AT_ONCE = 8
const PER_LANE = 4
/** The time limit for all files of an email together. */
const FETCH_MS = 30_000
/** If a download takes longer, the shard continues with other emails. */
const PATIENCE_MS = 2_000
const ASK_AGAIN_MS = 15_000
/** A message may be sent over several days, and the file may change meanwhile. */
const KEPT_MS = 3_600_000
/** How long a server that could not provide a file is not asked again. */
const AWAY_MS = 60_000
const KEPT_BYTES = 128 * 1024 * 1024
/** Added to each entry's own size, so that the number of entries without files is limited too. */
const ENTRY_BYTES = 16_384

type Entry = { found: Promise<FetchedAttachments>; beganMs: number; bytes: number; until?: Date }

const LATER: FetchedAttachments = { kind: 'retry', reason: 'under way', afterMs: ASK_AGAIN_MS, wasNotAttempted: true }

export function createAttachmentFetcher(settings: AttachmentFetcherSettings): AttachmentFetcher {
  const { outbound, clock, log, maxBytes, keptBytes = KEPT_BYTES, patienceMs = PATIENCE_MS } = settings
  const inTurn = createLaneSemaphore(createSemaphore(AT_ONCE), PER_LANE)
  /** In the order of their last use, the most recent last. */
  const entries = new Map<string, Entry>()

  function begin(appId: AppId, messageId: string, asked: readonly AttachmentSource[]): Entry {
    const found = inTurn(appId, () => fetchAll(asked)).catch(
      (): FetchedAttachments => ({ kind: 'failed', reason: 'internal error' }),
    )
    const entry: Entry = { found, beganMs: clock.leaseMs(), bytes: ENTRY_BYTES }
    found.then((files) => {
      const isThere = !('kind' in files)
      if (isThere) for (const { encoded } of files) entry.bytes += encoded.length
      // The URL is not logged, because it may contain an access token.
      else log.warn({ appId, messageId, reason: files.reason }, 'an attachment could not be fetched')
      const keptMs = isThere || files.kind === 'failed' ? KEPT_MS : AWAY_MS
      entry.until = new Date(clock.now().getTime() + keptMs)
      makeRoom()
    })
    return entry
  }

  function makeRoom() {
    let bytes = [...entries.values()].reduce((sum, entry) => sum + entry.bytes, 0)
    for (const [id, entry] of entries) {
      if (bytes <= keptBytes) return
      if (entry.until === undefined) continue
      entries.delete(id)
      bytes -= entry.bytes
    }
  }

  /** Fetches files one after the other, so that memory never holds more than the limit of one email. */
  async function fetchAll(asked: readonly AttachmentSource[]): Promise<FetchedAttachments> {
    if (maxBytes === 0) return { kind: 'failed', reason: 'not allowed by this server' }
    const endMs = clock.leaseMs() + FETCH_MS
    const files: EmailAttachment[] = []
    let left = maxBytes
    for (const { url, name, contentType } of asked) {
      const result = await outbound.request({
        url,
        method: 'GET',
        headers: { 'user-agent': 'Carillon', 'accept-encoding': 'identity' },
        maxAnswerBytes: left,
        timeoutMs: Math.max(1, endMs - clock.leaseMs()),
      })
      if (result.kind !== 'answer') return failureOf(result)
      const wrong = findWrong(result)
      if (wrong) return wrong
      const { body, headers } = result
      left -= body.length
      const typeSaid = headers['content-type']?.split(';')[0]?.trim() ?? ''
      files.push({ name, contentType: contentType ?? typeSaid, encoded: encodeBase64(body) })
    }
    return files
  }

  return {
    async fetch(appId, messageId, asked) {
      const known = entries.get(messageId)
      const isOver = known?.until !== undefined && clock.now() >= known.until
      const entry = known && !isOver ? known : begin(appId, messageId, asked)
      entries.delete(messageId)
      entries.set(messageId, entry)
      return within(entry.found, entry.beganMs + patienceMs - clock.leaseMs())
    },
  }
}

async function within(found: Promise<FetchedAttachments>, waitMs: number): Promise<FetchedAttachments> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<FetchedAttachments>((resolve) => {
    timer = setTimeout(resolve, Math.max(0, waitMs), LATER)
  })
  const first = await Promise.race([found, late])
  clearTimeout(timer)
  return first
}

const failureOf = ({ kind, reason }: Exclude<OutboundResult, { kind: 'answer' }>): FetchedAttachments => ({
  // A GET changes nothing at the customer, so an unanswered one can be repeated.
  kind: kind === 'refused' ? 'failed' : 'retry',
  reason,
})

function findWrong({
  status,
  headers,
  isWhole,
}: Extract<OutboundResult, { kind: 'answer' }>): FetchedAttachments | undefined {
  const reason = `status ${status}`
  if (status >= 500 || [408, 425, 429].includes(status)) return { kind: 'retry', reason }
  // This includes redirects, which are not followed.
  if (status !== 200) return { kind: 'failed', reason }
  if (!isWhole) return { kind: 'failed', reason: 'too large' }
  const encoding = headers['content-encoding'] ?? 'identity'
  return encoding === 'identity' ? undefined : { kind: 'failed', reason: 'compressed by its server' }
}
