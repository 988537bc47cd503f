// What a user did, newest first.

import { invalid, userNotFound } from '../lib/errors.ts'
import { type AppId, isUuid } from '../lib/ids.ts'
import { readUserRef } from '../users/aliases/identity.ts'
import type { EventsContext } from './context.ts'
import type { HistoryAnswer, HistoryQuery } from './schema.ts'
import { type EventCursor, findEvents } from './store.ts'

export async function viewHistory(
  ctx: EventsContext,
  appId: AppId,
  { alias_label, alias_id }: { alias_label: string; alias_id: string },
  { limit, cursor, name }: HistoryQuery,
): Promise<HistoryAnswer> {
  const after = cursor === undefined ? undefined : readCursor(cursor)
  const userId = await ctx.reader.owner(appId, readUserRef(alias_label, alias_id))
  if (userId === undefined) throw userNotFound()
  // One more than the page holds, to see whether there is another page.
  const found = await findEvents(ctx.db, appId, userId, { name, after, limit: limit + 1 })
  const page = found.slice(0, limit)
  const last = page.at(-1)
  return {
    events: page.map(({ id, name, at, receivedAt, properties }) => ({
      id,
      name,
      timestamp: at.toISOString(),
      received_at: receivedAt.toISOString(),
      properties,
    })),
    next_cursor: last && found.length > limit ? writeCursor(last) : null,
  }
}

const writeCursor = ({ at, id }: EventCursor) => Buffer.from(`${at.getTime()} ${id}`).toString('base64url')

function readCursor(cursor: string): EventCursor {
  const [time = '', id = ''] = Buffer.from(cursor, 'base64url').toString().split(' ')
  const at = new Date(/^-?\d+$/.test(time) ? Number(time) : Number.NaN)
  if (Number.isNaN(at.getTime()) || !isUuid(id))
    throw invalid('cursor must be the next_cursor of a page before', { field: 'cursor' })
  return { at, id }
}
