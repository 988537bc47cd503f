// Files for mails, from where the customer has them: fetched once for all that get the same, and kept for a while.

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
   * Those of one message are fetched once, and nobody takes all the places. Waits a moment; what is not there by then is to be asked
   * for again. Never rejects.
   */
  fetch(appId: AppId, messageId: string, asked: readonly AttachmentSource[]): Promise<FetchedAttachments>
}

export type FetchedAttachments = readonly EmailAttachment[] | Extract<ChannelOutcome, { kind: 'retry' | 'failed' }>

export type AttachmentFetcherSettings = {
  outbound: Pick<Outbound, 'request'>
  clock: Clock
  log: Pick<Log, 'warn'>
  /** Of all files of a mail together, before they are encoded; none: nothing is fetched. */
  maxBytes: number
  /** Of what is kept, encoded. */
  keptBytes?: number | undefined
  patienceMs?: number | undefined
}

const AT_ONCE = 8
const PER_LANE = 4
/** For all files of a mail. */
const FETCH_MS = 30_000
/** A line goes on with other mails when it takes longer. */
const PATIENCE_MS = 2_000
const ASK_AGAIN_MS = 15_000
/** A message may be sent over days: the file may have changed since. */
const KEPT_MS = 3_600_000
/** Whoever could not give it is left alone for so long. */
const AWAY_MS = 60_000
const KEPT_BYTES = 128 * 1024 * 1024
/** Counted for each beside its files, so that those without any have an end, too. */
const ENTRY_BYTES = 16_384

type Entry = { found: Promise<FetchedAttachments>; beganMs: number; bytes: number; until?: Date }

const LATER: FetchedAttachments = { kind: 'retry', reason: 'under way', afterMs: ASK_AGAIN_MS, wasNotAttempted: true }

export function createAttachmentFetcher(settings: AttachmentFetcherSettings): AttachmentFetcher {
  const { outbound, clock, log, maxBytes, keptBytes = KEPT_BYTES, patienceMs = PATIENCE_MS } = settings
  const inTurn = createLaneSemaphore(createSemaphore(AT_ONCE), PER_LANE)
  /** Those asked for last stand at the end. */
  const entries = new Map<string, Entry>()

  function begin(appId: AppId, messageId: string, asked: readonly AttachmentSource[]): Entry {
    const found = inTurn(appId, () => fetchAll(asked)).catch(
      (): FetchedAttachments => ({ kind: 'failed', reason: 'internal error' }),
    )
    const entry: Entry = { found, beganMs: clock.leaseMs(), bytes: ENTRY_BYTES }
    found.then((files) => {
      const isThere = !('kind' in files)
      if (isThere) for (const { encoded } of files) entry.bytes += encoded.length
      // An address may hold what opens it: it is not told.
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

  /** One after the other, so that no more is ever held than a mail may have. */
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
  // Asking for a file changes nothing: what was not answered may be asked again.
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
  // Redirects are among them: they are not followed.
  if (status !== 200) return { kind: 'failed', reason }
  if (!isWhole) return { kind: 'failed', reason: 'too large' }
  const encoding = headers['content-encoding'] ?? 'identity'
  return encoding === 'identity' ? undefined : { kind: 'failed', reason: 'compressed by its server' }
}
