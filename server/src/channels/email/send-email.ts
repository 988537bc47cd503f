// Sends one email by any route: builds it, hands it over when the throttle of its inbox provider permits, and
// interprets the result.

import type { Clock } from '../../lib/clock.ts'
import type { ChannelOutcome } from '../channel.ts'
import { type EmailAddress, parseEmailAddress } from './address.ts'
import {
  asksToSlowDown,
  interpretSessionFailure,
  interpretTransaction,
  type PeerRole,
} from './interpret-smtp-outcome.ts'
import { type EmailItem, InvalidEmail } from './message.ts'
import { buildMessagePieces } from './mime/build-message.ts'
import { prepareMessage } from './mime/compose-message.ts'
import type { ProviderThrottle } from './provider-throttle.ts'
import type { SmtpEnvelope, SmtpTransaction } from './smtp/connection.ts'
import type { PoolResult, QueuedTransaction } from './smtp/connection-pool.ts'

export type EmailTransport = {
  peerRole: PeerRole
  throttle: ProviderThrottle
  clock: Pick<Clock, 'now'>
  deliver(mailing: QueuedTransaction): Promise<PoolResult>
}

export async function sendEmail(
  item: EmailItem,
  { peerRole: side, throttle: lanes, clock, deliver }: EmailTransport,
): Promise<ChannelOutcome> {
  // Checked before the cost of signing. The throttle is asked again when a connection is available.
  const waitMs = lanes.peekWaitMs(item.inboxProvider)
  if (waitMs !== undefined) return slowed(waitMs)
  const made = await make(item)
  if ('kind' in made) return made
  let beganMs = clock.now().getTime()
  const result = await deliver({
    ...made,
    source: item.source,
    hold() {
      beganMs = clock.now().getTime()
      const afterMs = lanes.reserve(item.inboxProvider)
      return afterMs === undefined ? undefined : { kind: 'held', afterMs }
    },
  })
  if (result.kind === 'held') return slowed(result.afterMs)
  const isOfRelay = side === 'relay' && result.kind === 'unopened'
  if ('reply' in result && result.reply && !isOfRelay && asksToSlowDown(result.reply))
    lanes.slowDown(item.inboxProvider, beganMs)
  return result.kind === 'unopened' ? interpretSessionFailure(result, side) : interpretTransaction(result, side)
}

const slowed = (afterMs: number): ChannelOutcome => ({
  kind: 'retry',
  reason: 'slowed',
  afterMs,
  wasNotAttempted: true,
})

/** Nothing has been sent yet, so any error here only means that the email cannot be sent. */
async function make(item: EmailItem): Promise<SmtpTransaction | ChannelOutcome> {
  const to = parseEmailAddress(item.to)
  if (!to) return { kind: 'gone', reason: 'not a valid address' }
  try {
    return { ...(await buildMessagePieces(item, to)), envelope: envelopeOf(item, to) }
  } catch (error) {
    return { kind: 'failed', reason: error instanceof InvalidEmail ? error.message : 'content not valid' }
  }
}

function envelopeOf({ envelopeFrom, bcc = [], reference, content }: EmailItem, to: EmailAddress): SmtpEnvelope {
  const from = envelopeFrom === '' ? undefined : mustRead(envelopeFrom)
  const others = bcc.map(mustRead)
  const isUtf8 = [from, to, ...others].some((it) => it?.isUtf8) || prepareMessage(content).isUtf8
  return { from, to, bcc: others, id: reference, isUtf8 }
}

function mustRead(text: string): EmailAddress {
  const address = parseEmailAddress(text)
  if (!address) throw new InvalidEmail('address in the envelope not valid')
  return address
}
