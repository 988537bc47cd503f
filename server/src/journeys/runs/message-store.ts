// SQL on the hidden messages of send nodes.

import type { AppId, Id } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { rows, sql } from '../../storage/sql.ts'
import type { JourneyId } from '../journey.ts'
import type { NodeId } from '../node.ts'
import type { RunId } from './run.ts'

type MessageId = Id<'message'>

export type Sent = { runId: RunId; nodeId: NodeId; messageId: MessageId }

/**
 * The messages by which runs may have been sent something at nodes: those of the days between coming there and going on. A node
 * has a message for every day of a year, and a run none of nearly all of them.
 */
export const findSent = (
  db: Db,
  appId: AppId,
  journeyId: JourneyId,
  asked: readonly { runId: RunId; nodeId: NodeId }[],
  now: Date,
) =>
  db.query<Sent>(
    sql`
    select w."runId" as run_id, w."nodeId" as node_id, m.message_id
    from jsonb_to_recordset(${rows(asked)}::jsonb) as w("runId" uuid, "nodeId" uuid)
    join journey_runs r on r.app_id = ${appId} and r.id = w."runId"
    cross join lateral array_position(r.path, w."nodeId") as p(place)
    join journey_messages m on m.app_id = ${appId} and m.journey_id = ${journeyId} and m.node_id = w."nodeId"
      and m.day > r.path_at[p.place] - interval '24 hours'
      and m.day <= coalesce(r.path_at[p.place + 1], ${now}::timestamptz)`,
    { prepare: false },
  )

/** Of a day and a version of the template. */
export type MessageKey = { nodeId: NodeId; day: Date; templateId: string; revision: number }

export async function findNodeMessage(
  db: Db,
  appId: AppId,
  journeyId: JourneyId,
  { nodeId, day, templateId, revision }: MessageKey,
): Promise<MessageId | undefined> {
  const [found] = await db.query<{ messageId: MessageId }>(sql`
    select m.message_id from journey_messages m
    where m.app_id = ${appId} and m.journey_id = ${journeyId} and m.node_id = ${nodeId} and m.day = ${day}
      and m.template_id = ${templateId} and m.template_revision = ${revision}`)
  return found?.messageId
}

/** False when somebody else was faster; then theirs is there. */
export async function insertNodeMessage(
  db: Db,
  appId: AppId,
  journeyId: JourneyId,
  { nodeId, day, templateId, revision }: MessageKey,
  messageId: MessageId,
): Promise<boolean> {
  const inserted = await db.query(sql`
    insert into journey_messages (app_id, journey_id, node_id, day, template_id, template_revision, message_id)
    select a.id, ${journeyId}::uuid, ${nodeId}::uuid, ${day}::timestamptz, ${templateId}::uuid, ${revision}::integer,
      ${messageId}::uuid
    from apps a
    where a.id = ${appId}
    on conflict do nothing
    returning message_id`)
  return inserted.length > 0
}
