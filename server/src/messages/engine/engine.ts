import { newId } from '../../lib/ids.ts'
import { createQueue } from '../../queue/enqueue.ts'
import { createMerger } from '../../storage/merge.ts'
import { createChangeUsers } from '../../users/change.ts'
import { createSlots } from '../deliver/slots.ts'
import { createGrowthTracker } from '../expand/growth.ts'
import { createPrepareMonths } from '../expand/months.ts'
import { createDeliveryStats } from './stats.ts'
import type { Engine } from './types.ts'

export type EngineParts = Pick<
  Engine,
  | 'db'
  | 'directDb'
  | 'scanAudience'
  | 'clock'
  | 'log'
  | 'channels'
  | 'sender'
  | 'renderer'
  | 'recordRunActions'
  | 'readRunData'
> & {
  /** How many messages of one app may be in flight to one provider. */
  maxInFlight: number
  random?: () => number
}

/** Outcomes change few users, so these changes get a small part of the pool. */
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
