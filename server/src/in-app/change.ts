// Creates, updates and deletes in-app messages. Each operation writes its audit entry in the same transaction.

import { actorOf, type RequestOrigin } from '../apps/audit/actor.ts'
import { insertAuditEntries, lockApp } from '../apps/store.ts'
import { invalid } from '../lib/errors.ts'
import type { AppId } from '../lib/ids.ts'
import { getSegmentIds } from '../segments/read.ts'
import type { Db } from '../storage/db.ts'
import { type InAppContents, readContents } from './content.ts'
import type { InAppContext } from './context.ts'
import { deleteMessageDataJob } from './delete-data.ts'
import {
  type InAppMessage,
  type InAppMessageId,
  type InAppState,
  inAppMessageNotFound,
  NEXT_STATES,
} from './message.ts'
import { checkWindow, DEFAULTS, readSettings } from './read-settings.ts'
import type { CreateInAppBody, UpdateInAppBody } from './schema.ts'
import {
  countOtherLiveMessages,
  deleteMessage,
  deleteOtherVariants,
  insertMessage,
  lockMessage,
  updateMessage,
  upsertVariants,
} from './store.ts'

/** Limited because every device requests all of them each time its app is opened. */
export const MAX_LIVE = 100

export async function createInAppMessage(
  ctx: InAppContext,
  appId: AppId,
  body: CreateInAppBody,
  by: RequestOrigin,
): Promise<InAppMessageId> {
  const { contents, ...labels } = readContents(body.contents)
  const now = ctx.now()
  const state = body.state ?? 'draft'
  if (state !== 'draft' && state !== 'live') throw invalid('state of a new message must be draft or live')
  const message: InAppMessage = {
    ...DEFAULTS,
    ...readSettings(body, ctx.newId),
    ...(await readSegments(ctx, appId, body)),
    ...labels,
    id: ctx.newId(),
    name: readName(body.name),
    state,
    createdAt: now,
    updatedAt: now,
  }
  checkWindow(message)
  await ctx.db.transaction(async (db) => {
    await lockApp(db, appId)
    await checkRoom(db, appId, message, now)
    await insertMessage(db, appId, message)
    await writeVariants(ctx, db, appId, message.id, contents)
    await note(ctx, db, appId, by, 'in_app_message.create', message.id, { name: message.name, state }, now)
  })
  return message.id
}

export async function updateInAppMessage(
  ctx: InAppContext,
  appId: AppId,
  id: InAppMessageId,
  body: UpdateInAppBody,
  by: RequestOrigin,
): Promise<void> {
  const read = body.contents && readContents(body.contents)
  const { contents, ...labels } = read ?? {}
  const changes = {
    ...readSettings(body, ctx.newId),
    ...(await readSegments(ctx, appId, body)),
    ...labels,
    ...(body.name !== undefined && { name: readName(body.name) }),
  }
  const now = ctx.now()
  await ctx.db.transaction(async (db) => {
    await lockApp(db, appId)
    const before = await lockMessage(db, appId, id)
    if (!before) throw inAppMessageNotFound()
    const after: InAppMessage = { ...before, ...changes, state: nextState(before, body.state), updatedAt: now }
    checkWindow(after)
    await checkRoom(db, appId, after, now)
    await updateMessage(db, appId, after)
    if (contents) {
      await writeVariants(ctx, db, appId, id, contents)
      await deleteOtherVariants(db, appId, id, Object.keys(contents))
    }
    const fields = Object.entries(body).flatMap(([name, value]) => (value === undefined ? [] : [name]))
    await note(ctx, db, appId, by, 'in_app_message.update', id, { name: after.name, state: after.state, fields }, now)
  })
}

/** Its counts and grants are deleted in the background, because there may be many. */
export async function deleteInAppMessage(
  ctx: InAppContext,
  appId: AppId,
  id: InAppMessageId,
  by: RequestOrigin,
): Promise<void> {
  const now = ctx.now()
  await ctx.db.transaction(async (db) => {
    const name = await deleteMessage(db, appId, id)
    if (name === undefined) throw inAppMessageNotFound()
    if (await ctx.isUsedByJourney(db, appId, id)) throw invalid('In-app message is used by an active journey.')
    await ctx.queue.enqueue(db, [deleteMessageDataJob(appId, id, now)])
    await note(ctx, db, appId, by, 'in_app_message.delete', id, { name }, now)
  })
}

function nextState({ state }: InAppMessage, given: InAppState | null | undefined): InAppState {
  if (state === 'archived') throw invalid('An archived message cannot be changed')
  if (given === undefined || given === null || given === state) return state
  if (!NEXT_STATES[state].includes(given))
    throw invalid(`state cannot go from ${state} to ${given}`, { field: 'state' })
  return given
}

/** The caller holds the lock of the app, so that messages going live concurrently are counted one after the other. */
async function checkRoom(db: Db, appId: AppId, { id, state, endTime }: InAppMessage, now: Date): Promise<void> {
  if (state !== 'live' || (endTime !== null && endTime <= now)) return
  if ((await countOtherLiveMessages(db, appId, id, now)) >= MAX_LIVE)
    throw invalid(`An app can have at most ${MAX_LIVE} live in-app messages`)
}

async function readSegments(ctx: InAppContext, appId: AppId, body: UpdateInAppBody) {
  const { included_segments: included, excluded_segments: excluded } = body
  return {
    ...(included !== undefined && { includedSegments: await getSegmentIds(ctx, appId, included ?? []) }),
    ...(excluded !== undefined && { excludedSegments: await getSegmentIds(ctx, appId, excluded ?? []) }),
  }
}

const writeVariants = (ctx: InAppContext, db: Db, appId: AppId, id: InAppMessageId, contents: InAppContents) =>
  upsertVariants(
    db,
    appId,
    id,
    Object.entries(contents).map(([language, content]) => ({ id: ctx.newId(), language, content })),
  )

/** The schema has already checked the length. */
function readName(name: string): string {
  if (name.trim() === '') throw invalid('name must not be empty', { field: 'name' })
  return name
}

const note = (
  { newId }: InAppContext,
  db: Db,
  appId: AppId,
  by: RequestOrigin,
  action: string,
  id: InAppMessageId,
  detail: Record<string, unknown>,
  now: Date,
) =>
  insertAuditEntries(
    db,
    appId,
    [{ id: newId(), actor: actorOf(by), action, targetType: 'in_app_message', targetId: id, detail }],
    now,
  )
