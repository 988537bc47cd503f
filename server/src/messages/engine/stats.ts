// Counts outcomes of this process for the metrics page.

import type { ChannelOutcome } from '../../channels/channel.ts'
import { ownProperty } from '../../lib/own-property.ts'
import type { Provider } from '../delivery.ts'

export type DeliveryStats = {
  count(provider: Provider, outcome: ChannelOutcome['kind'] | 'interrupted', by?: number): void
  /** By provider and outcome: `apns sent`. */
  read(): Record<string, number>
}

export function createDeliveryStats(): DeliveryStats {
  const counts: Record<string, number> = {}
  return {
    count(provider, outcome, by = 1) {
      const name = `${provider} ${outcome}`
      counts[name] = (ownProperty(counts, name) ?? 0) + by
    },
    read: () => ({ ...counts }),
  }
}
