// Translates a server's answer into the outcome of the email.

import type { ChannelOutcome } from '../channel.ts'
import { bounceReasons, classifyBounce } from './classify-bounce.ts'
import type { TransactionResult } from './smtp/connection.ts'
import type { SessionFailure } from './smtp/open-session.ts'
import type { SmtpReply } from './smtp/reply.ts'

/**
 * Who answers: our own relay, whose refusal of us is for the operator to fix, or the recipient's server, which may
 * refuse us although nothing on our side is wrong.
 */
export type PeerRole = 'relay' | 'host'

export function interpretTransaction(exchange: TransactionResult, side: PeerRole): ChannelOutcome {
  if (exchange.kind === 'taken') return taken(exchange.reply)
  if (exchange.kind === 'unfit') return { kind: 'failed', reason: exchange.reason }
  if (exchange.kind === 'lost') return { kind: exchange.isWritten ? 'unknown' : 'retry', reason: exchange.reason }
  const { at, reply } = exchange
  if (reply.code < 500) return { kind: 'retry', reason: wordsFor(reply) }
  return at === 'mail' ? refusedSender(reply, side) : refusedMail(reply)
}

/** The session failed before anything was said about a recipient. */
export function interpretSessionFailure({ reason, reply, isFinal }: SessionFailure, side: PeerRole): ChannelOutcome {
  if (side === 'relay')
    return isFinal ? { kind: 'misconfigured', reason } : { kind: 'retry', reason, pausesProvider: true }
  if (!isFinal) return { kind: 'retry', reason }
  return { kind: 'failed', reason: reply ? bounceReasons.block : reason }
}

/**
 * The server asks us to send less, or to wait. This applies to everything for that inbox provider, not only to this
 * email.
 */
export function asksToSlowDown({ code, enhanced = '', text }: SmtpReply): boolean {
  if (code < 400 || code >= 500 || /gr[ae]y-?list/i.test(text)) return false
  return code === 421 || code === 451 || enhanced.startsWith('4.7.')
}

function taken({ text }: SmtpReply): ChannelOutcome {
  const [, id] =
    /\bqueued as ([\w.-]{4,80})|\bid=([\w.-]{4,80})|^(?:2\.\d\.\d )?ok ([\w.-]{8,80})$/i
      .exec(text)
      ?.filter((it) => it) ?? []
  return id === undefined ? { kind: 'sent' } : { kind: 'sent', id }
}

function refusedSender(reply: SmtpReply, side: PeerRole): ChannelOutcome {
  if (isTooLarge(reply)) return { kind: 'failed', reason: 'message too large' }
  if (side === 'relay') return { kind: 'misconfigured', reason: 'sender refused' }
  return { kind: 'failed', reason: bounceReasons.block }
}

function refusedMail(reply: SmtpReply): ChannelOutcome {
  if (isTooLarge(reply)) return { kind: 'failed', reason: 'message too large' }
  const bounce = classifyBounce(reply)
  if (bounce === 'hard') return { kind: 'gone', reason: bounceReasons.hard }
  return { kind: 'failed', reason: bounceReasons[bounce === 'transient' ? 'soft' : bounce] }
}

const isTooLarge = ({ code, enhanced }: SmtpReply) => enhanced === '5.3.4' || (code === 552 && enhanced === undefined)

const wordsFor = (reply: SmtpReply) => {
  if (asksToSlowDown(reply)) return 'slow down'
  return classifyBounce(reply) === 'full' ? bounceReasons.full : `status ${reply.code}`
}
