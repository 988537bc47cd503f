// The representation of caught mail: a list, and a single mail with its parts.

import { AppError, invalid } from '../../lib/errors.ts'
import { type AppId, isUuid } from '../../lib/ids.ts'
import { parseMime } from '../../lib/parse-mime.ts'
import type { Db } from '../../storage/db.ts'
import type { MailAnswer, MailboxAnswer, MailboxQuery } from './schema.ts'
import { type CaughtEmailSummary, findCaught, listCaught, type MailboxCursor } from './store.ts'

export async function viewMailbox(db: Db, appId: AppId, { limit, cursor, to }: MailboxQuery): Promise<MailboxAnswer> {
  const after = cursor === undefined ? undefined : readCursor(cursor)
  // One more row than is shown tells whether there is another page.
  const found = await listCaught(db, appId, { to: to?.toLowerCase(), after, limit: limit + 1 })
  const page = found.slice(0, limit)
  const last = found.length > limit ? page.at(-1) : undefined
  return { mails: page.map(summary), next_cursor: last ? writeCursor(last) : null }
}

export async function viewCaughtEmail(db: Db, appId: AppId, id: string): Promise<MailAnswer> {
  const found = await findCaught(db, appId, id)
  if (!found) throw new AppError('not-found', { code: 'mail-0', title: 'Mail not found' })
  const { headerLines, html, text } = parseMime(found.raw)
  return { ...summary(found), headers: headerLines, html, text, raw: found.raw.toString('utf8') }
}

const summary = ({ id, at, fromAddress, toAddress, subject, messageId }: CaughtEmailSummary) => ({
  id,
  at: at.toISOString(),
  from: fromAddress,
  to: toAddress,
  subject,
  message_id: messageId,
})

const writeCursor = ({ at, id }: MailboxCursor) => Buffer.from(`${at.getTime()} ${id}`).toString('base64url')

function readCursor(cursor: string): MailboxCursor {
  const [time = '', id = ''] = Buffer.from(cursor, 'base64url').toString().split(' ')
  const at = new Date(/^\d{1,15}$/.test(time) ? Number(time) : Number.NaN)
  if (Number.isNaN(at.getTime()) || !isUuid(id))
    throw invalid('cursor must be the next_cursor of a page before', { field: 'cursor' })
  return { at, id }
}
