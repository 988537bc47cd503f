// Mail through one server that passes it on: the operator's, or an app's own.

import type { Clock } from '../../lib/clock.ts'
import type { Channel } from '../channel.ts'
import { sendEach } from '../send-each.ts'
import type { MailItem } from './message.ts'
import { createLanes } from './provider-throttle.ts'
import { sendMail } from './send-email.ts'
import { type ConnectionSettings, openConnection } from './smtp/connection.ts'
import { createPool, type PoolSettings } from './smtp/connection-pool.ts'
import { createPace } from './smtp/pace.ts'

export type RelaySettings = ConnectionSettings &
  Pick<PoolSettings, 'mailsEach' | 'idleMs' | 'awayMs' | 'isShared'> & {
    clock: Clock
    connections: number
    /** No more than these in a second; the others wait for their turn. */
    perSecond?: number | undefined
  }

export function openRelay(settings: RelaySettings): Channel<MailItem> {
  const { clock, connections, perSecond } = settings
  const lanes = createLanes(clock)
  const pace = perSecond === undefined ? undefined : createPace(perSecond)
  const pool = createPool({ ...settings, pace, open: () => openConnection(settings) })
  return sendEach({
    // On each connection one mail, the next one with its envelope, and one more that is built and signed meanwhile. How many of an app
    // are under way at all is bounded by who asks.
    lanes: { of: ({ source }) => `${source.appId} ${source.lane}`, atOnce: 3 * connections },
    sendOne: (item) => sendMail(item, { side: 'relay', lanes, clock, deliver: pool.deliver }),
    release: pool.close,
  })
}
