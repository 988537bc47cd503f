// Addresses that refused mail when it was handed over are not tried for ever: one that leads nowhere never again, one that is full or
// unwell not when it was so too often.

import type { Outcome } from '../../channels/channel.ts'
import { bounceReasons } from '../../channels/email/classify.ts'
import { noteSoftBounces, suppress } from '../../email/suppressions/store.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Composed } from '../engine/compose.ts'
import type { Engine } from '../engine/engine.ts'

/** What fails here is found out again by the next message. */
export async function suppressBounced(
  { db, clock, log }: Pick<Engine, 'db' | 'clock' | 'log'>,
  appId: AppId,
  sent: readonly Composed[],
  outcomes: readonly Outcome[],
): Promise<void> {
  const addressesWith = (...reasons: string[]) => [
    ...new Set(
      sent.flatMap(({ due }, i) => {
        const outcome = outcomes[i] as Outcome
        return due.token !== null && 'reason' in outcome && isEnd(outcome) && reasons.includes(outcome.reason)
          ? [due.token.toLowerCase()]
          : []
      }),
    ),
  ]
  const hard = addressesWith(bounceReasons.hard)
  const soft = addressesWith(bounceReasons.soft, bounceReasons.full)
  try {
    if (hard.length > 0)
      await suppress(
        db,
        appId,
        hard.map((address) => ({ address, reason: bounceReasons.hard })),
        clock.now(),
      )
    if (soft.length > 0) await noteSoftBounces(db, appId, soft, clock.now())
  } catch (error) {
    log.warn({ appId, reason: (error as Error).message }, 'addresses that bounced were not suppressed')
  }
}

const isEnd = ({ kind }: Outcome) => kind === 'gone' || kind === 'failed'
