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
 * The messages that runs may have been sent at nodes: those of the days between arriving and leaving. A node may have a message for
 * every day of a year, of which a run received at most a few.
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

/** Of a day and a revision of the template. `nth`: for users who pass the node for the nth time that day, counted from 0. */
export type NodeMessageKey = { nodeId: NodeId; day: Date; templateId: string; revision: number; nth: number }

/** Answers the existing ones, each with its index in the list. */
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

/** False when another worker was faster, whose message exists now. */
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
 * Counts how often users passed nodes today, in the order in which all writers lock rows. Answers the totals with these passes, and
 * their day, which is the next one where another worker has begun it already.
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
