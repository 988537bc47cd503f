// What both roles of a process share: database connections, keys, metrics, and outbound connections.

import type { ConfigureNew } from '../apps/create.ts'
import type { ChannelOutcome } from '../channels/channel.ts'
import { createDnsResolver } from '../channels/dns.ts'
import { type Outbound, openOutbound } from '../channels/outbound.ts'
import { openWebhooks } from '../channels/webhook/webhook.ts'
import { createMetrics, type Metrics } from '../http/metrics.ts'
import type { Clock, SystemClock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { type SecretBox, secretBox } from '../lib/secrets.ts'
import type { SendWebhook } from '../sending/send-notice.ts'
import type { Config } from '../settings/config.ts'
import { type ConnectionShares, shareConnections } from '../settings/share-connections.ts'
import type { PoolOptions } from '../storage/db.ts'
import { createListener, type Listener } from '../storage/listen.ts'
import { openPools, type Pools } from './pools.ts'

export type AppOptions = {
  config: Config
  connection: PoolOptions['connection']
  /** Seals the credentials of providers; must be the same on every server of a database. */
  secretKey: string
  clock: Clock & Partial<SystemClock>
  log: Log
  /**
   * An id that no other process can have, so that a server that is killed and restarted need not wait for its own old
   * lease.
   */
  nodeId?: string | undefined
  configureNew?: ConfigureNew | undefined
  /** How many keys for sending domains are kept ready. Defaults to none. */
  spareRsaKeys?: number | undefined
  /** False while the disk is nearly full: reads and limits continue, all other writes are refused. */
  mayWrite?: (() => boolean) | undefined
}

export type Infrastructure = Omit<AppOptions, 'mayWrite'> & {
  mayWrite: () => boolean
  secrets: SecretBox
  shares: ConnectionShares
  pools: Pools
  listener: Listener
  metrics: Metrics
  outbound: Outbound
  sendWebhook: SendWebhook
  resolver: ReturnType<typeof createDnsResolver>
}

/** Opens everything that both roles need, and adds whatever must be closed to `resources`. */
export function openInfrastructure(options: AppOptions, resources: AsyncDisposableStack): Infrastructure {
  const { config, connection, secretKey, clock, log, mayWrite = () => true } = options
  const shares = shareConnections(config)
  const pools = openPools({ connection, shares, log, ...(isAnchored(clock) && { clock }) })
  resources.defer(() => pools.close())
  const listener = createListener(connection, log)
  resources.defer(() => listener.close())
  const outbound = openOutbound(config.providers.outbound)
  resources.defer(() => outbound.close())
  const webhooks = openWebhooks({ outbound, clock })
  resources.defer(() => webhooks.close())
  const metrics = createMetrics()
  resources.defer(() => metrics.close())
  return {
    ...options,
    mayWrite,
    secrets: secretBox(secretKey),
    shares,
    pools,
    listener,
    metrics,
    outbound,
    sendWebhook: async (webhook) => (await webhooks.send([webhook]))[0] as ChannelOutcome,
    resolver: createDnsResolver(config.providers.email.resolver),
  }
}

const isAnchored = (clock: Clock & Partial<SystemClock>): clock is SystemClock => clock.anchor !== undefined
