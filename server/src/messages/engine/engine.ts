// What the engine is made of: everything between a message that was accepted and what became of each of its deliveries.

import type { Clock } from '../../lib/clock.ts'
import { type AppId, newId } from '../../lib/ids.ts'
import type { Log } from '../../lib/log.ts'
import { createQueue, type Queue } from '../../queue/enqueue.ts'
import type { ScanAudience } from '../../segments/scan.ts'
import type { Db } from '../../storage/db.ts'
import { createMerger } from '../../storage/merge.ts'
import type { Renderer } from '../../templates/render/renderer.ts'
import { type ChangeUsers, createChangeUsers } from '../../users/change.ts'
import { createSlots, type Slots } from '../deliver/slots.ts'
import type { EmailPort } from '../email/port.ts'
import { createGrowthTracker, type GrowthTracker } from '../expand/growth.ts'
import { createPrepareMonths, type PrepareMonths } from '../expand/months.ts'
import type { RecordRunActions } from '../feedback/run-actions.ts'
import type { RunId } from '../message.ts'
import type { DeliverySender } from './sender.ts'
import { createDeliveryStats, type DeliveryStats } from './stats.ts'

/** What Liquid sees as `journey`, by run; runs that are gone are left out. */
export type ReadRunData = (
  appId: AppId,
  runIds: readonly RunId[],
) => Promise<ReadonlyMap<RunId, Record<string, unknown>>>

export type Engine = {
  db: Db
  /** Connections that direct messages alone use. */
  directDb: Db
  /** Finds those whom filters and segments mean, on connections of its own. */
  scanAudience: ScanAudience
  clock: Clock
  log: Log
  queue: Queue
  sender: DeliverySender
  renderer: Renderer
  email: EmailPort
  /** Of users: addresses that lead nowhere any more are unsubscribed. */
  change: ChangeUsers
  prepareMonths: PrepareMonths
  growth: GrowthTracker
  slots: Slots
  stats: DeliveryStats
  random: () => number
  /** Of whoever leads users through runs. */
  recordRunActions?: RecordRunActions | undefined
  readRunData?: ReadRunData | undefined
}

export type EngineParts = Pick<
  Engine,
  | 'db'
  | 'directDb'
  | 'scanAudience'
  | 'clock'
  | 'log'
  | 'sender'
  | 'renderer'
  | 'email'
  | 'recordRunActions'
  | 'readRunData'
> & {
  /** Messages under way to one provider at once. */
  maxInFlight: number
  random?: () => number
}

/** Changes to users that follow from outcomes: few, and not worth more of the pool. */
const MERGE_SLOTS = 2

export function createEngine({ maxInFlight, random = Math.random, ...parts }: EngineParts): Engine {
  const merger = createMerger({ slots: MERGE_SLOTS })
  return {
    ...parts,
    random,
    queue: createQueue({ clock: parts.clock, newId }),
    change: createChangeUsers({ ...parts, newId, merger }),
    prepareMonths: createPrepareMonths(parts.db),
    growth: createGrowthTracker(parts.db),
    slots: createSlots(maxInFlight),
    stats: createDeliveryStats(),
  }
}
