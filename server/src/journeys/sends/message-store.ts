// SQL on the hidden messages of send nodes.

import type { AppId, Id, UserId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { rows, sql } from '../../storage/sql.ts'
import type { JourneyId } from '../journey.ts'
import type { NodeId } from '../nodes/node.ts'
import type { RunId } from '../runs/run.ts'

type MessageId = Id<'message'>

export type SentMessage = { runId: RunId; nodeId: NodeId; messageId: MessageId }

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
  db.query<SentMessage>(
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

/** Of a day and a version of the template; `nth`: for who passes the node for the nth time that day, counted from 0. */
export type NodeMessageKey = { nodeId: NodeId; day: Date; templateId: string; revision: number; nth: number }

/** Answers each that is there, with its place in the list. */
export const findNodeMessages = (db: Db, appId: AppId, journeyId: JourneyId, keys: readonly NodeMessageKey[]) =>
  db.query<{ n: number; messageId: MessageId }>(
    sql`
    select k.n, m.message_id
    from jsonb_to_recordset(${rows(keys.map((key, n) => ({ ...key, n })))}::jsonb)
      as k(n integer, "nodeId" uuid, day timestamptz, "templateId" uuid, revision integer, nth smallint)
    join journey_messages m on m.app_id = ${appId} and m.journey_id = ${journeyId} and m.node_id = k."nodeId"
      and m.day = k.day and m.template_id = k."templateId" and m.template_revision = k.revision and m.nth = k.nth`,
    { prepare: false },
  )

/** False when somebody else was faster; then theirs is there. */
export async function insertNodeMessage(
  db: Db,
  appId: AppId,
  journeyId: JourneyId,
  { nodeId, day, templateId, revision, nth }: NodeMessageKey,
  messageId: MessageId,
): Promise<boolean> {
  const inserted = await db.query(sql`
    insert into journey_messages (app_id, journey_id, node_id, day, template_id, template_revision, nth, message_id)
    select a.id, ${journeyId}::uuid, ${nodeId}::uuid, ${day}::timestamptz, ${templateId}::uuid, ${revision}::integer,
      ${nth}::smallint, ${messageId}::uuid
    from apps a
    where a.id = ${appId}
    on conflict do nothing
    returning message_id`)
  return inserted.length > 0
}

export type NodePasses = { userId: UserId; nodeId: NodeId; count: number }

/**
 * Adds to how often users passed nodes today, in the order that everybody writes in: whoever does so at once waits, and counts on.
 * Answers how often it was with these, and on which day, which is the next one where others have begun it meanwhile.
 */
export const countPasses = (db: Db, appId: AppId, journeyId: JourneyId, list: readonly NodePasses[], day: Date) =>
  db.query<{ userId: UserId; nodeId: NodeId; day: Date; passes: number }>(
    sql`
    insert into journey_passes (app_id, journey_id, user_id, node_id, day, passes)
    select a.id, ${journeyId}::uuid, r."userId", r."nodeId", ${day}::timestamptz, r.count
    from apps a cross join jsonb_to_recordset(${rows(list)}::jsonb) as r("userId" uuid, "nodeId" uuid, count integer)
    where a.id = ${appId}
    order by r."userId", r."nodeId"
    on conflict (app_id, journey_id, user_id, node_id) do update
    set passes = excluded.passes + case when journey_passes.day >= excluded.day then journey_passes.passes else 0 end,
      day = greatest(journey_passes.day, excluded.day)
    returning user_id, node_id, day, passes`,
    { prepare: false },
  )
