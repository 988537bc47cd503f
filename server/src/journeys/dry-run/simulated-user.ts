// Somebody who is walked through a journey, with what is known of them.

import type { UserId } from '../../lib/ids.ts'
import type { TemplateChannel } from '../nodes/node.ts'

export type SimulatedUser = {
  userId: UserId
  zone: string | null
  lastActive: Date | null
  /** Where something that is sent can reach them. */
  channels: ReadonlySet<TemplateChannel>
  /** What the journey has done to their tags, as far as segments look at it; null: taken away. */
  tags: ReadonlyMap<string, string | null>
  /** The same as a text, and the day, for which `holds` was found out. */
  judgedAs: string | undefined
  /** Which demands of the journey they meet. */
  holds: readonly boolean[]
}

const NO_TAGS: ReadonlyMap<string, string | null> = new Map()
const NO_CHANNELS: ReadonlySet<TemplateChannel> = new Set()

export const createSimulatedUser = (userId: UserId): SimulatedUser => ({
  userId,
  zone: null,
  lastActive: null,
  channels: NO_CHANNELS,
  tags: NO_TAGS,
  judgedAs: undefined,
  holds: [],
})
