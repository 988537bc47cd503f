import type { Deliveries } from './deliveries.ts'
import type { Faults } from './faults.ts'
import type { Pace } from './pace.ts'
import { SLOW_MS } from './service.ts'

/** What the receivers of a box share. */
export type Inside = { deliveries: Deliveries; faults: Faults; pace: Pace; port: number | undefined }

export const slowly = () => new Promise<void>((resolve) => setTimeout(resolve, SLOW_MS).unref())
