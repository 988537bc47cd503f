// Lists messages: newest first by pages, or in the order of their time after a cursor.

import { invalid } from '../lib/errors.ts'
import { type AppId, isUuid } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { parseInstant } from './accept/parse-time.ts'
import type { Message } from './message.ts'
import type { ListQuery } from './schema.ts'
import {
  countMessages,
  findMessageCounts,
  findMessagesAfter,
  findNewestMessages,
  type MessageCursor,
  type MessageFilter,
} from './store.ts'
import { messageObject } from './view.ts'

export async function listMessages(db: Db, appId: AppId, query: ListQuery) {
  const { limit, offset, time_offset } = query
  const filter = readFilter(query)
  if (time_offset !== undefined && offset > 0) throw invalid('time_offset cannot be combined with offset')
  const messages =
    time_offset === undefined
      ? await findNewestMessages(db, appId, filter, limit, offset)
      : await findMessagesAfter(db, appId, filter, readPlace(time_offset), limit)
  const counts = Map.groupBy(
    await findMessageCounts(
      db,
      appId,
      messages.map(({ id }) => id),
    ),
    ({ messageId }) => messageId,
  )
  const last = messages.at(-1)
  return {
    total_count: await countMessages(db, appId, filter),
    offset,
    limit,
    // If there is nothing new, the same cursor leads to whatever comes later.
    ...(time_offset !== undefined && { time_offset, next_time_offset: last ? placeOf(last) : time_offset }),
    notifications: messages.map((it) => messageObject(appId, it, counts.get(it.id) ?? [])),
  }
}

function readFilter({ kind, template_id }: ListQuery): MessageFilter {
  if (template_id !== undefined && !isUuid(template_id)) throw invalid('template_id must be a UUID')
  return { kind, templateId: template_id?.toLowerCase() }
}

/** Reads a time, or the cursor of the previous page: the time and id of its last message, in Base64. */
function readPlace(given: string): MessageCursor {
  const moment = parseInstant(given)
  if (moment) return { sendAfter: moment, id: undefined }
  const [at = '', id = ''] = Buffer.from(given, 'base64').toString('utf8').split('#')
  const sendAfter = parseInstant(at)
  if (!sendAfter || !isUuid(id)) throw invalid('time_offset must be an ISO 8601 time or the next_time_offset of a page')
  return { sendAfter, id: id.toLowerCase() }
}

const placeOf = ({ sendAfter, id }: Message) => Buffer.from(`${sendAfter.toISOString()}#${id}`).toString('base64')
