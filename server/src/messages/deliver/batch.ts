// A slice of a line's due deliveries, on its way through one attempt.

import type { AppId } from '../../lib/ids.ts'
import type { JobRun } from '../../queue/job.ts'
import type { DeliverySettings, FrequencyCap } from '../../sending/settings.ts'
import type { EmailDimensions, Shard } from '../delivery.ts'
import type { ComposedDelivery, ReadyDelivery } from './compose.ts'

/** So many are sent at once. */
export const BATCH_SIZE = 100

export type Attempt = {
  work: JobRun
  appId: AppId
  shard: Shard
  /** Of this attempt alone: a slice with it was begun by nobody else. */
  fence: number
  settings: DeliverySettings
}

/** What a slice of it is known by. */
export const claimOf = ({ work, fence }: Pick<Attempt, 'work' | 'fence'>) => ({ shard: work.job.key, fence })

/** Of what a worker left in the middle. */
export const INTERRUPTED = 'interrupted'

export const messageIdsOf = (slice: readonly ComposedDelivery[]) => [...new Set(slice.map(({ message }) => message.id))]

/** A line carries one channel, so that all that is capped in a slice has the same cap. */
export const capOf = ({ frequencyCaps }: DeliverySettings, { message }: ComposedDelivery): FrequencyCap | undefined =>
  message.options.frequencyCap === false || message.options.isTest
    ? undefined
    : frequencyCaps.find(({ channel }) => channel === message.channel)

/** What a mail is counted under beside its message; a test is counted nowhere. */
export const dimensionsOf = ({ message, mailing }: ReadyDelivery): EmailDimensions =>
  mailing && !message.options.isTest
    ? { sendingDomain: mailing.domain.domain, inboxProvider: mailing.inboxProvider }
    : { sendingDomain: null, inboxProvider: null }

/** The name of a mail stands in the mail itself; other providers give theirs. */
export const ownReferenceOf = ({ mailing }: ReadyDelivery): string | null => mailing?.id ?? null

/** Tests are outside the limit. */
export const countsForLimit = ({ message }: ComposedDelivery) => !message.options.isTest
