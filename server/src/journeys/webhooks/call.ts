// Calls of send_webhook nodes: one signed request for each run that passes. A failed request is retried for a day under the same id, so
// that the receiver can recognize it. Each webhook is a job of its own, so that a slow one delays no other.

import type { ChannelOutcome } from '../../channels/channel.ts'
import type { AppId, UserId } from '../../lib/ids.ts'
import type { SecretBox } from '../../lib/secrets.ts'
import type { Queue } from '../../queue/enqueue.ts'
import type { JobRun } from '../../queue/job.ts'
import { readSending } from '../../sending/read.ts'
import type { SendWebhook } from '../../sending/send-notice.ts'
import type { Db } from '../../storage/db.ts'
import { EXTERNAL_ID } from '../../users/aliases/identity.ts'
import { loadReferencedUsers } from '../../users/load-store.ts'
import type { User } from '../../users/user.ts'
import { webhookCallsJob } from '../jobs.ts'
import type { RunEvent, RunId } from '../runs/run.ts'
import { findRunData } from '../runs/run-store.ts'
import { COUNT_SHARD, changeCounts } from '../stats-store.ts'
import { deferCalls, deleteCalls, findDueCalls, findNextCall, type WebhookCall } from './call-store.ts'
import { journeyReceivers } from './receivers.ts'
import { findWebhook } from './store.ts'
import type { JourneyWebhook } from './webhook.ts'

export type WebhookCallsContext = {
  db: Db
  now: () => Date
  queue: Queue
  secrets: SecretBox
  sendWebhook: SendWebhook
}

/** Concurrent requests. */
const AT_ONCE = 20
/** After these the job yields to other jobs. */
const ROUNDS = 20
const SECOND_MS = 1_000
const PAUSE_MS = { first: 5 * SECOND_MS, longest: 3_600 * SECOND_MS }
const HELD_MS = 60 * SECOND_MS
const LIFE_MS = 86_400 * SECOND_MS

export const deliverCalls = (ctx: WebhookCallsContext) => async (work: JobRun) => {
  const { appId, key } = work.job
  if (await isHeld(ctx, appId)) {
    await ctx.queue.enqueue(ctx.db, [webhookCallsJob(appId, key, new Date(ctx.now().getTime() + HELD_MS))])
    return
  }
  for (let round = 0; round < ROUNDS && !work.signal.aborted; round++) {
    const webhook = await findWebhook(ctx.db, appId, key)
    const calls = await findDueCalls(ctx.db, appId, key, ctx.now(), AT_ONCE)
    if (calls.length === 0) break
    const outcomes = webhook ? await send(ctx, appId, webhook, calls) : calls.map((): ChannelOutcome => GONE)
    await settle(ctx, work, calls, outcomes)
  }
  const next = await findNextCall(ctx.db, appId, key)
  if (next) await ctx.queue.enqueue(ctx.db, [webhookCallsJob(appId, key, next)])
}

/** An operator who paused sending, or restored a database, wants no requests to go out. The application limit does not apply. */
async function isHeld({ db, now }: WebhookCallsContext, appId: AppId): Promise<boolean> {
  const { hold } = await readSending(db, appId, now())
  return hold !== undefined && hold.reason !== 'disabled'
}

const GONE: ChannelOutcome = { kind: 'gone', reason: 'the webhook was deleted' }

async function send(
  { db, now, secrets, sendWebhook }: WebhookCallsContext,
  appId: AppId,
  webhook: JourneyWebhook,
  calls: readonly WebhookCall[],
): Promise<ChannelOutcome[]> {
  const refs = [...new Set(calls.map(({ userId }) => userId))].map((id) => ({ id }))
  const users = await loadReferencedUsers(db, appId, refs, { subscriptions: false, purchases: false })
  const userOf = new Map<UserId, User>(users.flatMap((user) => (user ? [[user.id, user]] : [])))
  const runs = new Map<RunId, { name: string; entryEvent: RunEvent | null }>(
    (
      await findRunData(
        db,
        appId,
        calls.map(({ runId }) => runId),
      )
    ).map((it) => [it.id, it]),
  )
  const signedWith = journeyReceivers.signingSecrets(secrets, appId, webhook, now())
  return Promise.all(
    calls.map((call) =>
      sendWebhook({
        url: webhook.url,
        id: `call_${call.id}`,
        body: bodyOf(appId, call, userOf.get(call.userId), runs.get(call.runId)),
        secrets: signedWith,
      }),
    ),
  )
}

const bodyOf = (
  appId: AppId,
  { journeyId, nodeId, runId, userId, calledAt }: WebhookCall,
  user: User | undefined,
  run: { name: string; entryEvent: RunEvent | null } | undefined,
) =>
  JSON.stringify({
    type: 'journey.webhook',
    timestamp: calledAt.toISOString(),
    data: {
      app_id: appId,
      journey_id: journeyId,
      journey_name: run?.name ?? null,
      node_id: nodeId,
      run_id: runId,
      user: {
        onesignal_id: userId,
        external_id: user?.aliases.get(EXTERNAL_ID) ?? null,
        tags: user?.properties.tags ?? {},
        language: user?.properties.language ?? null,
      },
      event: run?.entryEvent ?? null,
    },
  })

/** Refused, unanswered and unreachable are treated alike: all may be repaired within the day. */
async function settle(
  { db, now }: WebhookCallsContext,
  { job: { appId }, isStillHeld, recordProgress }: JobRun,
  calls: readonly WebhookCall[],
  outcomes: readonly ChannelOutcome[],
): Promise<void> {
  const at = now()
  const over = new Map<string, 'successful' | 'failed'>()
  const again: { id: string; dueAt: Date }[] = []
  for (const [n, { id, calledAt, attempts }] of calls.entries()) {
    const outcome = outcomes[n] as ChannelOutcome
    const isTooLate = at.getTime() - calledAt.getTime() >= LIFE_MS
    if (outcome.kind === 'sent') over.set(id, 'successful')
    else if (outcome.kind === 'gone' || isTooLate) over.set(id, 'failed')
    else again.push({ id, dueAt: new Date(at.getTime() + pauseMs(attempts, outcome)) })
  }
  await db.transaction(async (db) => {
    if (!(await isStillHeld(db))) return
    await recordProgress(db)
    if (again.length > 0) await deferCalls(db, appId, again)
    const deleted = new Set((await deleteCalls(db, appId, [...over.keys()])).map(({ id }) => id))
    const settled = Map.groupBy(
      calls.filter(({ id }) => deleted.has(id)),
      ({ journeyId }) => journeyId,
    )
    for (const [journeyId, list] of [...settled].sort(([a], [b]) => (a < b ? -1 : 1)))
      await changeCounts(
        db,
        appId,
        journeyId,
        COUNT_SHARD.calls,
        list.map(({ id, nodeId }) => ({ placeId: nodeId, fact: over.get(id) as string, by: 1 })),
      )
  })
}

function pauseMs(attempts: number, outcome: ChannelOutcome): number {
  const askedMs = outcome.kind === 'retry' ? (outcome.afterMs ?? 0) : 0
  return Math.max(Math.min(PAUSE_MS.longest, PAUSE_MS.first * 2 ** attempts), Math.min(askedMs, LIFE_MS))
}
