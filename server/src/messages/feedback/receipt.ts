// What a provider reports of a text that it took.

import type { Fact } from '../counts/fact.ts'

/** `gone` is a failure after which the number is not worth another try. */
export type Receipt = {
  /** The provider's own name for the text. */
  reference: string
  state: 'delivered' | 'failed' | 'gone' | 'unknown'
  reason?: string | undefined
}

/** As it stands with the delivery. */
export type KeptReceipt = 'delivered' | 'failed' | 'unknown'

export const keptAs = ({ state }: Pick<Receipt, 'state'>): KeptReceipt => (state === 'gone' ? 'failed' : state)

/** Reports come in any order and more than once: what says more wins, whenever it comes. */
const WEIGHT: Record<Receipt['state'], number> = { unknown: 1, failed: 2, gone: 3, delivered: 4 }

export const saysMore = (a: Receipt['state'], b: Receipt['state'] | null) => WEIGHT[a] > (b === null ? 0 : WEIGHT[b])

export const factOf: Record<KeptReceipt, Fact> = {
  delivered: 'provider_successful',
  failed: 'provider_failed',
  unknown: 'provider_errored',
}
