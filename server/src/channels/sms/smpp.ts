// Sends SMS through a message centre over SMPP 3.4. The connection is kept for as long as the channel is open, because
// reports and replies arrive on it. While it is down, items may be retried.

import { randomInt } from 'node:crypto'
import type { PDU } from 'smpp'
import type { Log } from '../../lib/log.ts'
import type { Channel, ChannelOutcome } from '../channel.ts'
import { DestinationForbidden } from '../dial.ts'
import type { Outbound } from '../outbound.ts'
import { sendEach } from '../send-each.ts'
import type { InboundSms, SmsItem, SmsReceipt } from './message.ts'
import { readDelivered } from './smpp-deliver.ts'
import { openLink, type SmppLink } from './smpp-link.ts'
import { type NumberKind, partsOf } from './smpp-parts.ts'
import { judgeBindStatus, judgeSubmitStatus } from './smpp-status.ts'

export type SmppChannelSettings = {
  outbound: Pick<Outbound, 'dial'>
  log: Pick<Log, 'info' | 'warn'>
  host: string
  port?: number | undefined
  isTls?: boolean | undefined
  systemId: string
  password: string
  systemType?: string | undefined
  /** The default sender: a number, a short code or a name. */
  from: string
  /** Type and plan of the sender's number, if the centre wants others than those that follow from its form. */
  sender?: NumberKind | undefined
  /** How many SMS may be in flight at once. */
  window?: number | undefined
  /** Called for each report and each incoming SMS. The centre gets its confirmation when they resolve. */
  onReceipt(receipt: SmsReceipt): Promise<void>
  onText(text: InboundSms): Promise<void>
  answerMs?: number | undefined
  enquireMs?: number | undefined
  /** The pause before another attempt to sign in: the first one, and the longest. */
  pausesMs?: { first: number; longest: number } | undefined
}

/** A connection, or the outcome if there is none. */
type SubmitAttempt = { link: SmppLink } | { outcome: ChannelOutcome }

export function openSmpp(settings: SmppChannelSettings): Channel<SmsItem> {
  const { log, window = 10, pausesMs = { first: 1_000, longest: 60_000 } } = settings
  const closing = new AbortController()
  const closed = new Promise<void>((resolve) => closing.signal.addEventListener('abort', () => resolve()))
  let reference = randomInt(256)
  let attempt: Promise<SubmitAttempt> = connect(settings)
  const kept = keepConnected()

  async function keepConnected() {
    for (let pauseMs = pausesMs.first; ; ) {
      const current = await Promise.race([attempt, closed])
      if (!current) return abandon(attempt)
      const link = 'link' in current ? current.link : undefined
      if (link) {
        log.info('signed in to the message centre')
        pauseMs = pausesMs.first
        await Promise.race([link.ended, closed])
      }
      if (closing.signal.aborted) return link && sayGoodbye(link)
      log.warn({ reason: reasonOf(current) }, 'no connection to the message centre')
      // After a connection that worked, items wait for the next one. After a failed attempt, they fail immediately.
      if (link) attempt = pause(pauseMs, closing.signal).then(() => connect(settings))
      else {
        await pause(pauseMs, closing.signal)
        pauseMs = Math.min(2 * pauseMs, pausesMs.longest)
        attempt = connect(settings)
      }
    }
  }

  return sendEach({
    atOnce: window,
    async sendOne(item) {
      const parts = partsOf({ ...item, from: item.from ?? settings.from }, reference++, settings.sender)
      if (!Array.isArray(parts)) return parts
      const current = await attempt
      return 'link' in current ? submit(current.link, parts) : current.outcome
    },
    async release() {
      closing.abort()
      await kept
    },
  })
}

const reasonOf = (attempt: SubmitAttempt) =>
  'outcome' in attempt && 'reason' in attempt.outcome ? attempt.outcome.reason : 'connection lost'

/** Closes a connection that was still being opened and is no longer needed. */
function abandon(attempt: Promise<SubmitAttempt>) {
  attempt.then((result) => 'link' in result && result.link.end())
}

async function sayGoodbye(link: SmppLink) {
  await link.ask('unbind', {})
  link.end()
}

async function connect(settings: SmppChannelSettings): Promise<SubmitAttempt> {
  const { outbound, host, isTls = false, port = isTls ? 3550 : 2775, answerMs = 15_000, enquireMs = 30_000 } = settings
  try {
    const socket = await outbound.dial({
      host,
      port,
      isTls,
      origin: `${isTls ? 'ssmpp' : 'smpp'}://${host}:${port}`,
      // Message centres have no standard port. Those below 1024 belong to other protocols.
      isPortAllowed: (port) => port >= 1024,
      timeoutMs: answerMs,
    })
    const link = openLink(socket, { answerMs, enquireMs, onDeliver: (pdu) => deliver(pdu, settings) })
    const { systemId: system_id, password, systemType: system_type = '' } = settings
    const reply = await link.ask('bind_transceiver', { system_id, password, system_type, interface_version: 0x34 })
    if (reply.kind === 'answer' && reply.pdu.command_status === 0) return { link }
    link.end()
    if (reply.kind === 'answer') return { outcome: judgeBindStatus(reply.pdu.command_status) }
    return { outcome: { kind: 'retry', reason: 'sign-in not answered' } }
  } catch (error) {
    if (error instanceof DestinationForbidden) return { outcome: { kind: 'misconfigured', reason: error.message } }
    return { outcome: { kind: 'retry', reason: 'not connected' } }
  }
}

async function deliver(pdu: PDU, { onReceipt, onText }: SmppChannelSettings) {
  const delivered = readDelivered(pdu)
  if (delivered?.kind === 'receipt') await onReceipt(delivered.receipt)
  if (delivered?.kind === 'text') await onText(delivered.text)
}

/**
 * Sends one part after the other. The first part that is not accepted decides the outcome: handsets do not show a text
 * with a missing part.
 */
async function submit(link: SmppLink, parts: readonly Record<string, unknown>[]): Promise<ChannelOutcome> {
  let id = ''
  for (const part of parts) {
    const reply = await link.ask('submit_sm', part)
    if (reply.kind === 'unwritten') return { kind: 'retry', reason: 'connection lost' }
    if (reply.kind === 'unanswered') return { kind: 'unknown', reason: reply.reason }
    if (reply.pdu.command_status !== 0) return judgeSubmitStatus(reply.pdu.command_status)
    id = reply.pdu.message_id ?? ''
  }
  return id === '' ? { kind: 'sent' } : { kind: 'sent', id }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done)
  })
}
