// Writes the effects of a batch of runs in its transaction: tags, in-app messages, webhook calls, and messages, which are last because
// other transactions wait for their jobs.

import { grantInAppMessages } from '../../in-app/grant.ts'
import type { AppId, UserId } from '../../lib/ids.ts'
import type { AddOptions } from '../../messages/expand/add-recipients.ts'
import type { Db } from '../../storage/db.ts'
import { setTags } from '../../users/properties/set-tags.ts'
import { webhookCallsJob } from '../jobs.ts'
import { templateChannelOf } from '../nodes/kinds.ts'
import type { TemplateChannel } from '../nodes/node.ts'
import { sendToRuns } from '../sends/send.ts'
import { insertCalls } from '../webhooks/call-store.ts'
import type { CompiledJourney } from './compile-journey.ts'
import type { RunsContext } from './context.ts'
import type { RunEffect } from './interpret.ts'
import { renderTags } from './render-tags.ts'
import type { RunMove } from './run-move.ts'
import type { LockedRun } from './run-store.ts'

type Done<Kind extends RunEffect['kind']> = { run: LockedRun; effect: Extract<RunEffect, { kind: Kind }> }

const effectsOf = <Kind extends RunEffect['kind']>(moves: readonly RunMove[], kind: Kind): Done<Kind>[] =>
  moves.flatMap(({ run, outcome }) =>
    outcome.effects.flatMap((effect) => (effect.kind === kind ? [{ run, effect } as Done<Kind>] : [])),
  )

export async function applyEffects(
  ctx: RunsContext,
  db: Db,
  appId: AppId,
  journey: CompiledJourney,
  moves: readonly RunMove[],
  adding: AddOptions | undefined,
  now: Date,
): Promise<void> {
  const tags = effectsOf(moves, 'tag').map(({ run, effect }) => ({ run, ...effect }))
  if (tags.length > 0) await setTags(ctx, db, appId, await renderTags(ctx, db, appId, journey, tags, now), now)
  const grants = effectsOf(moves, 'grant').map(({ run, effect: { iamId, seconds } }) => ({
    userId: run.userId,
    messageId: iamId,
    expiresAt: seconds === null ? null : new Date(now.getTime() + seconds * 1_000),
  }))
  await grantInAppMessages(db, appId, longest(grants))
  const calls = effectsOf(moves, 'call').map(({ run, effect: { nodeId, webhookId } }) => ({
    id: ctx.newId(),
    nodeId,
    webhookId,
    runId: run.id,
    userId: run.userId,
  }))
  if (calls.length > 0) {
    await insertCalls(db, appId, journey.id, calls, now)
    const webhooks = [...new Set(calls.map(({ webhookId }) => webhookId))]
    await ctx.queue.enqueue(
      db,
      webhooks.map((id) => webhookCallsJob(appId, id)),
    )
  }
  const hasSeveral = (channel: TemplateChannel) =>
    journey.nodes.filter(({ kind }) => templateChannelOf(kind) === channel).length > 1
  const sends = effectsOf(moves, 'send').map(({ run, effect: { nodeId, channel, templateId, trailLength } }) => ({
    run,
    nodeId,
    channel,
    templateId,
    step: hasSeveral(channel) ? run.pathLength + trailLength : 0,
  }))
  if (adding && sends.length > 0) await sendToRuns(ctx, db, appId, journey, sends, adding, now)
}

type Grant = { userId: UserId; messageId: string; expiresAt: Date | null }

/** A statement may write a row only once, but a batch may hold two runs of one user. */
function longest(grants: readonly Grant[]): Grant[] {
  const found = new Map<string, Grant>()
  for (const it of grants) {
    const name = `${it.userId} ${it.messageId}`
    const other = found.get(name)
    const isLonger = other?.expiresAt && (it.expiresAt === null || it.expiresAt > other.expiresAt)
    if (!other || isLonger) found.set(name, it)
  }
  return [...found.values()]
}
