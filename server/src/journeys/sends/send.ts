// Send nodes. Each has one hidden message for each day and revision of its template, and further ones of a push message for users who
// pass it several times a day. Runs become its recipients in the transaction that advances them; what follows is the engine's.

import { AppError } from '../../lib/errors.ts'
import type { AppId, UserId } from '../../lib/ids.ts'
import { DAY_MS, dayOf } from '../../lib/time-zone.ts'
import { type AddOptions, addRecipients } from '../../messages/expand/add-recipients.ts'
import type { JobLane, MessageId } from '../../messages/message.ts'
import { openMessage, type PreparedMessage, prepareFromTemplate } from '../../messages/recipients.ts'
import type { Db } from '../../storage/db.ts'
import { findRevisions } from '../../templates/store.ts'
import type { NodeId, TemplateChannel } from '../nodes/node.ts'
import type { CompiledJourney } from '../runs/compile-journey.ts'
import type { RunsContext } from '../runs/context.ts'
import type { Run } from '../runs/run.ts'
import {
  countPasses,
  findNodeMessages,
  insertNodeMessage,
  type NodeMessageKey,
  type NodePasses,
} from './message-store.ts'

/** `step`: the order among the sends of the run; 0 where the journey has no other node of this channel. */
type Send = {
  run: Pick<Run, 'id' | 'userId'>
  nodeId: NodeId
  channel: TemplateChannel
  templateId: string
  step: number
}

/** These messages must be opened first, outside the transaction, because other processes may render their content. */
export class MessageNotOpen extends Error {
  readonly keys: readonly NodeMessageKey[]
  constructor(keys: readonly NodeMessageKey[]) {
    super(`messages of nodes ${keys.map(({ nodeId }) => nodeId).join(', ')} are not open`)
    this.keys = keys
  }
}

/** The mail hosts of these users must be looked up first, outside the transaction, because that uses the network. */
export class HostsNotLookedUp extends Error {
  readonly userIds: readonly UserId[]
  constructor(userIds: readonly UserId[]) {
    super(`mailboxes of ${userIds.length} users are not looked up`)
    this.userIds = userIds
  }
}

export async function sendToRuns(
  ctx: RunsContext,
  db: Db,
  appId: AppId,
  journey: CompiledJourney,
  sends: readonly Send[],
  adding: AddOptions,
  now: Date,
): Promise<void> {
  const sendable = await findSendable(ctx, db, appId, journey, sends)
  const byKey = Map.groupBy(await findPasses(db, appId, journey, sendable, now), ({ key }) => nameOfKey(key))
  const groups = [...byKey.values()].map((runs) => ({ key: (runs[0] as Pass).key, runs }))
  const keys = groups.map(({ key }) => key)
  if (keys.length === 0) return
  const found = await findNodeMessages(db, appId, journey.id, keys)
  const idOf = new Map(found.map(({ n, messageId }) => [n, messageId]))
  const missing = keys.filter((_, n) => !idOf.has(n))
  if (missing.length > 0) throw new MessageNotOpen(missing)
  const recipients = groups.flatMap(({ runs }, n) =>
    runs.map(({ run, step }) => ({ messageId: idOf.get(n) as MessageId, runId: run.id, userId: run.userId, step })),
  )
  const areOpen = await addRecipients(ctx.engine, db, appId, recipients, adding, now)
  if (!areOpen) throw new Error(`a message of journey ${journey.id} was closed too early`)
}

type Sendable = Send & { revision: number }
type Pass = Send & { key: NodeMessageKey }

async function findSendable(
  ctx: RunsContext,
  db: Db,
  appId: AppId,
  journey: CompiledJourney,
  sends: readonly Send[],
): Promise<Sendable[]> {
  const byTemplate = Map.groupBy(sends, ({ templateId }) => templateId)
  const revisions = await findRevisions(db, appId, [...byTemplate.keys()])
  return [...byTemplate].flatMap(([templateId, sends]) => {
    const revision = revisions.get(templateId)
    // Templates of active journeys cannot be deleted. If one is missing all the same, there is nothing to send.
    if (revision === undefined) {
      const nodeIds = [...new Set(sends.map(({ nodeId }) => nodeId))]
      ctx.log.warn(
        { appId, journeyId: journey.id, nodeIds, templateId },
        'Sent nothing at a journey node: its template is missing',
      )
      return []
    }
    const isUnsendable = ctx.unsendable.has(nameOf({ templateId, revision }))
    return isUnsendable ? [] : sends.map((send) => ({ ...send, revision }))
  })
}

/** Messages of one node and day. A user who passes more often shares the last one. */
const MAX_MESSAGES_PER_DAY = 50

/** A device shows a message once, so every push message for a user must be another message. */
async function findPasses(
  db: Db,
  appId: AppId,
  journey: CompiledJourney,
  sends: readonly Sendable[],
  now: Date,
): Promise<Pass[]> {
  const today = new Date(dayOf(now.getTime()))
  const isCounted = ({ channel }: Send) => channel === 'push' && canPassTwiceADay(journey)
  const ofUser = Map.groupBy(sends.filter(isCounted), ({ run, nodeId }) => `${run.userId} ${nodeId}`)
  const list = [...ofUser.values()].map((own): NodePasses => {
    const { run, nodeId } = own[0] as Sendable
    return { userId: run.userId, nodeId, count: own.length }
  })
  const counted = list.length > 0 ? await countPasses(db, appId, journey.id, list, today) : []
  const next = new Map(
    counted.map(({ userId, nodeId, day, passes }) => {
      const name = `${userId} ${nodeId}`
      return [name, { day, nth: passes - (ofUser.get(name)?.length ?? 0) }]
    }),
  )
  return sends.map((send) => {
    const { run, nodeId, templateId, revision } = send
    const pass = next.get(`${run.userId} ${nodeId}`)
    const nth = pass ? Math.min(pass.nth++, MAX_MESSAGES_PER_DAY - 1) : 0
    return { ...send, key: { nodeId, day: pass?.day ?? today, templateId, revision, nth } }
  })
}

/** Whether a user may pass a node twice in a day. */
const canPassTwiceADay = ({ audience, reentrySeconds }: CompiledJourney) =>
  audience.kind === 'event_trigger' || (reentrySeconds !== undefined && reentrySeconds * 1_000 < DAY_MS)

const nameOfKey = ({ nodeId, day, nth }: NodeMessageKey) => `${nodeId} ${day.getTime()} ${nth}`

const laneOf = ({ audience }: CompiledJourney): JobLane => (audience.kind === 'event_trigger' ? 'direct' : 'bulk')

const nameOf = ({ templateId, revision }: Pick<NodeMessageKey, 'templateId' | 'revision'>) =>
  `${templateId} ${revision}`

/** A batch that began just before midnight still adds recipients to the message of that day. */
const OPEN_AFTER_MIDNIGHT_MS = 3_600_000

/** The loser of a race uses the message of the winner. If no message can be made of the template, nothing is sent and runs continue. */
export async function openNodeMessage(
  ctx: RunsContext,
  appId: AppId,
  journey: CompiledJourney,
  key: NodeMessageKey,
): Promise<void> {
  const now = ctx.now()
  const prepared = await prepareFromTemplate(ctx, appId, key.templateId, now).catch((error: unknown) => {
    if (!(error instanceof AppError) || error.kind !== 'invalid') throw error
    const place = { appId, journeyId: journey.id, nodeId: key.nodeId }
    ctx.log.warn(
      { ...place, reason: error.message },
      'Sent nothing at a journey node: no message can be made of its template',
    )
    ctx.unsendable.add(nameOf(key))
  })
  if (!prepared) return
  await ctx.db
    .transaction(async (db) => {
      const messageId = await open(ctx, db, appId, journey, key, prepared, now)
      // Rolled back, together with its message, when another worker was faster.
      if (!(await insertNodeMessage(db, appId, journey.id, key, messageId))) throw new LostRace()
    })
    .catch(ignoreLostRace)
}

class LostRace extends Error {}
const ignoreLostRace = (error: unknown) => {
  if (!(error instanceof LostRace)) throw error
}

function open(
  ctx: RunsContext,
  db: Db,
  appId: AppId,
  journey: CompiledJourney,
  { day }: NodeMessageKey,
  prepared: PreparedMessage,
  now: Date,
) {
  const until = new Date(day.getTime() + DAY_MS + OPEN_AFTER_MIDNIGHT_MS)
  return openMessage(ctx, db, appId, prepared, { name: journey.name, lane: laneOf(journey), until }, now)
}
