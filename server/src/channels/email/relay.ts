// Mail through one server that passes it on: the operator's, or an app's own.

import type { Clock } from '../../lib/clock.ts'
import type { Channel } from '../channel.ts'
import { sendEach } from '../send-each.ts'
import { type ConnectionSettings, openConnection } from './connection.ts'
import { createLanes } from './lanes.ts'
import type { MailItem } from './message.ts'
import { createPool, type PoolSettings } from './pool.ts'
import { sendMail } from './send-mail.ts'

export type RelaySettings = ConnectionSettings &
  Pick<PoolSettings, 'mailsEach' | 'idleMs' | 'awayMs'> & {
    clock: Clock
    connections: number
    /** No more than these in a second; the others wait for their turn. */
    perSecond?: number | undefined
  }

export function openRelay(settings: RelaySettings): Channel<MailItem> {
  const { clock, connections, perSecond } = settings
  const lanes = createLanes(clock)
  const pool = createPool({ ...settings, open: () => openConnection(settings) })
  const turn = createTurn(clock, perSecond)
  return sendEach({
    // On each connection one mail, the next one with its envelope, and one more that is built and signed meanwhile.
    atOnce: 3 * connections,
    sendOne: (item) =>
      sendMail(item, {
        side: 'relay',
        lanes,
        clock,
        async deliver(mailing) {
          await turn()
          return pool.deliver(mailing)
        },
      }),
    release: pool.close,
  })
}

/** One after the other, at that pace. Timers come late; what was due in the last 50 ms is made good. */
function createTurn(clock: Pick<Clock, 'leaseMs'>, perSecond: number | undefined): () => Promise<void> | undefined {
  let nextMs = 0
  return () => {
    if (perSecond === undefined) return undefined
    const nowMs = clock.leaseMs()
    const waitMs = nextMs - nowMs
    nextMs = Math.max(nextMs, nowMs - 50) + 1000 / perSecond
    return waitMs > 0 ? new Promise((go) => setTimeout(go, waitMs)) : undefined
  }
}
