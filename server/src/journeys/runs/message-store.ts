// SQL on the hidden messages of send nodes.

import type { AppId, Id } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { sql } from '../../storage/sql.ts'
import type { JourneyId } from '../journey.ts'
import type { NodeId } from '../node.ts'

type MessageId = Id<'message'>

export type NodeMessage = { nodeId: NodeId; messageId: MessageId }

export const findNodeMessages = (db: Db, appId: AppId, journeyId: JourneyId, nodeIds: readonly NodeId[]) =>
  db.query<NodeMessage>(sql`
    select m.node_id, m.message_id from journey_messages m
    where m.app_id = ${appId} and m.journey_id = ${journeyId} and m.node_id = any(${nodeIds}::uuid[])`)

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
