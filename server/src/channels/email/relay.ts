// Mail through one server that passes it on: the operator's, or an app's own.

import type { Clock } from '../../lib/clock.ts'
import type { Channel } from '../channel.ts'
import { sendEach } from '../send-each.ts'
import type { EmailItem } from './message.ts'
import { createProviderThrottle } from './provider-throttle.ts'
import { sendEmail } from './send-email.ts'
import { openSmtpConnection, type SmtpConnectionSettings } from './smtp/connection.ts'
import { createSmtpPool, type SmtpPoolSettings } from './smtp/connection-pool.ts'
import { createSendRate } from './smtp/pace.ts'

export type RelayChannelSettings = SmtpConnectionSettings &
  Pick<SmtpPoolSettings, 'mailsEach' | 'idleMs' | 'awayMs' | 'isShared'> & {
    clock: Clock
    connections: number
    /** No more than these in a second; the others wait for their turn. */
    perSecond?: number | undefined
  }

export function openRelayChannel(settings: RelayChannelSettings): Channel<EmailItem> {
  const { clock, connections, perSecond } = settings
  const lanes = createProviderThrottle(clock)
  const pace = perSecond === undefined ? undefined : createSendRate(perSecond)
  const pool = createSmtpPool({ ...settings, pace, open: () => openSmtpConnection(settings) })
  return sendEach({
    // On each connection one mail, the next one with its envelope, and one more that is built and signed meanwhile. How many of an app
    // are under way at all is bounded by who asks.
    lanes: { of: ({ source }) => `${source.appId} ${source.lane}`, atOnce: 3 * connections },
    sendOne: (item) => sendEmail(item, { peerRole: 'relay', throttle: lanes, clock, deliver: pool.deliver }),
    release: pool.close,
  })
}
