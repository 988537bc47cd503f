// The cursor of a page: the time and the id of its last entry.

import { invalid } from '../lib/errors.ts'
import { isUuid } from '../lib/ids.ts'

export type PageEnd = { at: Date; id: string }

export const writeCursor = ({ at, id }: PageEnd) => Buffer.from(`${at.getTime()} ${id}`).toString('base64url')

export function readCursor(cursor: string): PageEnd {
  const [time = '', id = ''] = Buffer.from(cursor, 'base64url').toString().split(' ')
  // No time that was ever written has more digits.
  if (!/^\d{1,14}$/.test(time) || !isUuid(id))
    throw invalid('cursor must be the next_cursor of a page before', { field: 'cursor' })
  return { at: new Date(Number(time)), id: id.toLowerCase() }
}
