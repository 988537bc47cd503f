import type { SinkDeliveries } from './deliveries.ts'
import type { Faults } from './faults.ts'
import type { ResponsePace } from './pace.ts'
import { SLOW_MS } from './service.ts'

/** What all receivers of a box share. */
export type BoxContext = { deliveries: SinkDeliveries; faults: Faults; pace: ResponsePace; port: number | undefined }

export const delaySlowResponse = () => new Promise<void>((resolve) => setTimeout(resolve, SLOW_MS).unref())
