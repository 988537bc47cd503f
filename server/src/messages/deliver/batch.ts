// One batch: deliveries of a shard that are marked, sent and recorded together in one attempt.

import type { AppId } from '../../lib/ids.ts'
import type { JobRun } from '../../queue/job.ts'
import type { DeliverySettings, FrequencyCap } from '../../sending/settings.ts'
import type { EmailDimensions, Shard } from '../delivery.ts'
import type { ComposedDelivery, MessageChannel, ReadyDelivery } from '../engine/channel.ts'

export const BATCH_SIZE = 100

/** One run of a shard's job. */
export type Attempt = {
  work: JobRun
  appId: AppId
  shard: Shard
  /** Unique to this attempt: no other attempt started a batch with it. */
  fence: number
  settings: DeliverySettings
  channel: MessageChannel
}

/** The key of the attempt's batch in the database. */
export const claimOf = ({ work, fence }: Pick<Attempt, 'work' | 'fence'>) => ({ shard: work.job.key, fence })

/** The reason of deliveries whose worker died after they were marked as being sent. */
export const INTERRUPTED = 'interrupted'

export const messageIdsOf = (batch: readonly ComposedDelivery[]) => [...new Set(batch.map(({ message }) => message.id))]

/** A shard has one channel, so all capped deliveries of a batch have the same cap. */
export const capOf = ({ frequencyCaps }: DeliverySettings, { message }: ReadyDelivery): FrequencyCap | undefined =>
  message.options.frequencyCap === false || message.options.isTest
    ? undefined
    : frequencyCaps.find(({ channel }) => channel === message.channel)

const NO_DIMENSIONS: EmailDimensions = { sendingDomain: null, inboxProvider: null }

export const dimensionsOf = ({ details }: ReadyDelivery): EmailDimensions => details.dimensions ?? NO_DIMENSIONS

/** The reference that the message itself carries; providers of other messages return theirs. */
export const ownReferenceOf = ({ details }: ReadyDelivery): string | null => details.reference ?? null

/** Tests do not count towards the application limit. */
export const countsForLimit = ({ message }: ReadyDelivery) => !message.options.isTest
