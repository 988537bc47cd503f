// The engine's jobs: their names, and how to enqueue them.

import type { AppId } from '../lib/ids.ts'
import type { NewJob } from '../queue/job.ts'
import { parseShard } from './delivery.ts'
import type { JobLane, MessageId } from './message.ts'

export const EXPAND = 'messages.expand'
/** Expands bulk messages; in the bulk lane, jobs take turns to read audiences. */
export const EXPAND_BULK = 'messages.expand-bulk'
export const DELIVER = 'messages.deliver'
export const CLOSE = 'messages.close'
export const REPORT_UNKNOWN = 'messages.tell-unknown'

/** The key of the job that expands all direct messages of an app whose time has come. */
export const DIRECT = 'direct'

/** Direct messages that are due at once share a job; every other message has its own, due when the message is. */
export function expandJob(
  appId: AppId,
  message: { id: MessageId; lane: JobLane } | typeof DIRECT,
  runAt?: Date,
): NewJob {
  const [key, lane] = message === DIRECT ? ([DIRECT, DIRECT] as const) : [message.id, message.lane]
  return { appId, name: lane === 'bulk' ? EXPAND_BULK : EXPAND, key, lane, ...(runAt && { runAt }) }
}

/** One job for each shard, due with its first delivery. */
export const deliverJobs = (appId: AppId, waiting: readonly { shard: string; dueAt: Date }[]): NewJob[] =>
  waiting.map(({ shard, dueAt }) => ({ appId, name: DELIVER, key: shard, lane: parseShard(shard).lane, runAt: dueAt }))

/** Closes the pending deliveries of a canceled message. */
export const closeJob = (appId: AppId, id: MessageId): NewJob => ({ appId, name: CLOSE, key: id })
