// The engine: everything between an accepted message and the outcome of each of its deliveries. Types only.

import type { ChannelOutcome } from '../../channels/channel.ts'
import type { Clock } from '../../lib/clock.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import type { Queue } from '../../queue/enqueue.ts'
import type { ScanAudience } from '../../segments/scan.ts'
import type { Db } from '../../storage/db.ts'
import type { Renderer } from '../../templates/render/renderer.ts'
import type { ChangeUsers } from '../../users/change.ts'
import type { Slots } from '../deliver/slots.ts'
import type { Provider, Shard } from '../delivery.ts'
import type { PrepareMonths } from '../expand/months.ts'
import type { RecordRunActions } from '../feedback/run-actions.ts'
import type { MessageId, RunId } from '../message.ts'
import type { OutgoingMessage } from '../outgoing-message.ts'
import type { MessageChannels } from './channel.ts'
import type { DeliveryStats } from './stats.ts'

export type Engine = {
  db: Db
  /** Connections that are reserved for direct messages. */
  directDb: Db
  /** Finds the subscriptions that match filters and segments, on its own connections. */
  scanAudience: ScanAudience
  clock: Clock
  log: Log
  queue: Queue
  channels: MessageChannels
  sender: DeliverySender
  renderer: Renderer
  /** Changes users: used to unsubscribe gone addresses. */
  change: ChangeUsers
  prepareMonths: PrepareMonths
  growth: GrowthTracker
  slots: Slots
  stats: DeliveryStats
  random: () => number
  /** Provided by journeys. */
  recordRunActions?: RecordRunActions | undefined
  readRunData?: ReadRunData | undefined
}

/** Hands outgoing messages to providers. Composition implements it with the channels. */
export type DeliverySender = {
  /** The providers the app can send through: the server supports them, and the app has given its credentials. */
  ready(appId: AppId): Promise<ReadonlySet<Provider>>
  /** Returns one outcome for each message, in their order. */
  send(
    appId: AppId,
    shard: Pick<Shard, 'provider' | 'lane'>,
    messages: readonly OutgoingMessage[],
  ): Promise<ChannelOutcome[]>
}

/** What Liquid sees as `journey`, by run. Runs that no longer exist are left out. */
export type ReadRunData = (
  appId: AppId,
  runIds: readonly RunId[],
) => Promise<ReadonlyMap<RunId, Record<string, unknown>>>

/** Has the statistics of a month's deliveries refreshed when large messages make it grow. */
export type GrowthTracker = {
  /** Records that this many deliveries were written, or will be when the transaction commits. */
  record(id: MessageId, count: number): void
  /** Call after the transaction. */
  analyzeIfGrown(now: Date): Promise<void>
}
