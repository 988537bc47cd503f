// Sends email through one server that forwards it: the operator's relay, or an app's own.

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
    /** At most this many emails per second; the others wait for their turn. */
    perSecond?: number | undefined
  }

export function openRelayChannel(settings: RelayChannelSettings): Channel<EmailItem> {
  const { clock, connections, perSecond } = settings
  const lanes = createProviderThrottle(clock)
  const pace = perSecond === undefined ? undefined : createSendRate(perSecond)
  const pool = createSmtpPool({ ...settings, pace, open: () => openSmtpConnection(settings) })
  return sendEach({
    // Each connection has one email in progress, a second one whose envelope is sent ahead, and a third that is built
    // and signed meanwhile. How much of one app is in flight overall is limited by the caller.
    lanes: { of: ({ source }) => `${source.appId} ${source.lane}`, atOnce: 3 * connections },
    sendOne: (item) => sendEmail(item, { peerRole: 'relay', throttle: lanes, clock, deliver: pool.deliver }),
    release: pool.close,
  })
}
