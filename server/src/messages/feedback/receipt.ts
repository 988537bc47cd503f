// Receipts: what a provider reports later about an SMS that it accepted.

import type { Fact } from '../counts/fact.ts'

/** `gone` is a failure after which the number is not worth another try. */
export type SmsReceipt = {
  /** The provider's reference of the SMS. */
  reference: string
  state: 'delivered' | 'failed' | 'gone' | 'unknown'
  reason?: string | undefined
}

/** The state that is stored with the delivery. */
export type StoredReceiptState = 'delivered' | 'failed' | 'unknown'

export const storedStateOf = ({ state }: Pick<SmsReceipt, 'state'>): StoredReceiptState =>
  state === 'gone' ? 'failed' : state

/** Receipts arrive in any order and more than once: the higher rank wins, whenever it arrives. */
const RANK: Record<SmsReceipt['state'], number> = { unknown: 1, failed: 2, gone: 3, delivered: 4 }

export const outranks = (a: SmsReceipt['state'], b: SmsReceipt['state'] | null) => RANK[a] > (b === null ? 0 : RANK[b])

export const factOf: Record<StoredReceiptState, Fact> = {
  delivered: 'provider_successful',
  failed: 'provider_failed',
  unknown: 'provider_errored',
}
