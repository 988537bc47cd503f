// Send nodes. Each has one hidden message for a day and a version of its template; its recipients are added to that message in the
// transaction that moves them on, and from there on it goes the way of all messages.

import { AppError } from '../../lib/errors.ts'
import type { AppId } from '../../lib/ids.ts'
import { DAY_MS, dayOf } from '../../lib/time-zone.ts'
import type { Lane, MessageId } from '../../messages/message.ts'
import { addRecipients, openMessage, type PreparedMessage, prepareFromTemplate } from '../../messages/recipients.ts'
import type { Db } from '../../storage/db.ts'
import { findRevisions } from '../../templates/store.ts'
import type { NodeOf } from '../node.ts'
import type { Compiled } from './compiled.ts'
import type { RunsContext } from './context.ts'
import { findNodeMessage, insertNodeMessage, type MessageKey } from './message-store.ts'
import type { Run } from './run.ts'

type SendNode = NodeOf<'send_push' | 'send_email' | 'send_sms'>
type Send = { run: Pick<Run, 'id' | 'userId'>; node: SendNode }

/** A message that is to be opened first: outside the transaction, because its content may take other processes. */
export class NotOpen extends Error {
  readonly key: MessageKey
  constructor(key: MessageKey) {
    super(`the message of node ${key.nodeId} is not open`)
    this.key = key
  }
}

export async function sendToRuns(
  ctx: RunsContext,
  db: Db,
  appId: AppId,
  journey: Compiled,
  sends: readonly Send[],
  now: Date,
): Promise<void> {
  const byNode = Map.groupBy(sends, ({ node }) => node)
  const revisions = await findRevisions(
    db,
    appId,
    [...byNode.keys()].map(({ template_id }) => template_id),
  )
  const ready: { messageId: MessageId; runs: Send[] }[] = []
  for (const [node, runs] of byNode) {
    const revision = revisions.get(node.template_id)
    // Templates of live journeys cannot be deleted; if one is gone all the same, there is nothing to send.
    if (revision === undefined) {
      ctx.log.warn(
        { appId, journeyId: journey.id, nodeId: node.id },
        'a template of a journey is gone; nothing is sent',
      )
      continue
    }
    const key = { nodeId: node.id, day: new Date(dayOf(now.getTime())), templateId: node.template_id, revision }
    if (ctx.unsendable.has(nameOf(key))) continue
    const messageId = await findNodeMessage(db, appId, journey.id, key)
    if (messageId === undefined) throw new NotOpen(key)
    ready.push({ messageId, runs })
  }
  // In the order that everybody locks in.
  for (const { messageId, runs } of ready.sort((a, b) => (a.messageId < b.messageId ? -1 : 1))) {
    const recipients = runs.map(({ run }) => ({ runId: run.id, userId: run.userId }))
    const isOpen = await addRecipients(ctx, db, appId, { messageId, lane: laneOf(journey) }, recipients, now)
    if (!isOpen) throw new Error(`message ${messageId} of journey ${journey.id} was closed too early`)
  }
}

const laneOf = ({ audience }: Compiled): Lane => (audience.kind === 'event_trigger' ? 'direct' : 'bulk')

const nameOf = ({ templateId, revision }: MessageKey) => `${templateId} ${revision}`

/** A batch that began just before midnight still adds to the day before. */
const AFTERWARDS_MS = 3_600_000

/** Who comes second finds the message of the first. Of a template that no message can be made of nothing is sent, and runs go on. */
export async function openNodeMessage(
  ctx: RunsContext,
  appId: AppId,
  journey: Compiled,
  key: MessageKey,
): Promise<void> {
  const now = ctx.now()
  const prepared = await prepareFromTemplate(ctx, appId, key.templateId, now).catch((error: unknown) => {
    if (!(error instanceof AppError) || error.kind !== 'invalid') throw error
    const place = { appId, journeyId: journey.id, nodeId: key.nodeId }
    ctx.log.warn({ ...place, reason: error.message }, 'a template of a journey cannot be sent; nothing is sent')
    ctx.unsendable.add(nameOf(key))
  })
  if (!prepared) return
  await ctx.db
    .transaction(async (db) => {
      const messageId = await open(ctx, db, appId, journey, key, prepared, now)
      // Undone, together with its message, when somebody else was faster.
      if (!(await insertNodeMessage(db, appId, journey.id, key, messageId))) throw new Faster()
    })
    .catch(ignoreFaster)
}

class Faster extends Error {}
const ignoreFaster = (error: unknown) => {
  if (!(error instanceof Faster)) throw error
}

function open(
  ctx: RunsContext,
  db: Db,
  appId: AppId,
  journey: Compiled,
  { day }: MessageKey,
  prepared: PreparedMessage,
  now: Date,
) {
  const until = new Date(day.getTime() + DAY_MS + AFTERWARDS_MS)
  return openMessage(ctx, db, appId, prepared, { name: journey.name, lane: laneOf(journey), until }, now)
}
