// The names of the engine's jobs, and what it takes to ask for them.

import type { AppId } from '../lib/ids.ts'
import type { NewJob } from '../queue/job.ts'
import { parseShard } from './delivery.ts'
import type { JobLane, MessageId } from './message.ts'

export const EXPAND = 'messages.expand'
/** The same for messages of the bulk lane, which wait for their turn to look for their audience. */
export const EXPAND_BULK = 'messages.expand-bulk'
export const DELIVER = 'messages.deliver'
export const CLOSE = 'messages.close'
export const REPORT_UNKNOWN = 'messages.tell-unknown'

/** Of the job that expands all direct messages of an app whose time has come. */
export const DIRECT = 'direct'

/** Direct messages that are to go out at once share a job; every other message has one of its own, due when it is. */
export function expandJob(
  appId: AppId,
  message: { id: MessageId; lane: JobLane } | typeof DIRECT,
  runAt?: Date,
): NewJob {
  const [key, lane] = message === DIRECT ? ([DIRECT, DIRECT] as const) : [message.id, message.lane]
  return { appId, name: lane === 'bulk' ? EXPAND_BULK : EXPAND, key, lane, ...(runAt && { runAt }) }
}

/** One for each line in which something waits, due with the first of it. */
export const deliverJobs = (appId: AppId, waiting: readonly { shard: string; dueAt: Date }[]): NewJob[] =>
  waiting.map(({ shard, dueAt }) => ({ appId, name: DELIVER, key: shard, lane: parseShard(shard).lane, runAt: dueAt }))

/** Closes what is left of a canceled message. */
export const closeJob = (appId: AppId, id: MessageId): NewJob => ({ appId, name: CLOSE, key: id })
