// One mail, over whatever way: built, offered when its lane lets it, and judged.

import type { Clock } from '../../lib/clock.ts'
import type { Outcome } from '../channel.ts'
import { type Address, readAddress } from './address.ts'
import { asksToSlowDown, judgeExchange, judgeUnopened, type Side } from './interpret-smtp-outcome.ts'
import { BadMail, type MailItem } from './message.ts'
import { buildPieces } from './mime/build-message.ts'
import { prepareMail } from './mime/compose-message.ts'
import type { Lanes } from './provider-throttle.ts'
import type { Envelope, Mail } from './smtp/connection.ts'
import type { Mailing, Result } from './smtp/connection-pool.ts'

export type Way = {
  side: Side
  lanes: Lanes
  clock: Pick<Clock, 'now'>
  deliver(mailing: Mailing): Promise<Result>
}

export async function sendMail(item: MailItem, { side, lanes, clock, deliver }: Way): Promise<Outcome> {
  // Before the work of signing; the lane is asked again when a connection is there.
  const waitMs = lanes.look(item.lane)
  if (waitMs !== undefined) return slowed(waitMs)
  const made = await make(item)
  if ('kind' in made) return made
  let beganMs = clock.now().getTime()
  const result = await deliver({
    ...made,
    source: item.source,
    hold() {
      beganMs = clock.now().getTime()
      const afterMs = lanes.take(item.lane)
      return afterMs === undefined ? undefined : { kind: 'held', afterMs }
    },
  })
  if (result.kind === 'held') return slowed(result.afterMs)
  const isOfRelay = side === 'relay' && result.kind === 'unopened'
  if ('reply' in result && result.reply && !isOfRelay && asksToSlowDown(result.reply)) lanes.slow(item.lane, beganMs)
  return result.kind === 'unopened' ? judgeUnopened(result, side) : judgeExchange(result, side)
}

const slowed = (afterMs: number): Outcome => ({ kind: 'retry', reason: 'slowed', afterMs, free: true })

/** Nothing has left here yet: whatever goes wrong is no more than a mail that cannot be sent. */
async function make(item: MailItem): Promise<Mail | Outcome> {
  const to = readAddress(item.to)
  if (!to) return { kind: 'gone', reason: 'not a valid address' }
  try {
    return { ...(await buildPieces(item, to)), envelope: envelopeOf(item, to) }
  } catch (error) {
    return { kind: 'failed', reason: error instanceof BadMail ? error.message : 'content not valid' }
  }
}

function envelopeOf({ envelopeFrom, bcc = [], reference, content }: MailItem, to: Address): Envelope {
  const from = envelopeFrom === '' ? undefined : mustRead(envelopeFrom)
  const others = bcc.map(mustRead)
  const isUtf8 = [from, to, ...others].some((it) => it?.isUtf8) || prepareMail(content).isUtf8
  return { from, to, bcc: others, id: reference, isUtf8 }
}

function mustRead(text: string): Address {
  const address = readAddress(text)
  if (!address) throw new BadMail('address in the envelope not valid')
  return address
}
