// The suppression list, a page at a time, newest first.

import { invalid } from '../../lib/errors.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import type { SuppressionsAnswer, SuppressionsQuery } from './schema.ts'
import { listSuppressions, type SuppressionCursor, type SuppressionRow } from './store.ts'

export async function viewSuppressions(
  db: Db,
  appId: AppId,
  { limit, cursor, address, reason }: SuppressionsQuery,
): Promise<SuppressionsAnswer> {
  const after = cursor === undefined ? undefined : readCursor(cursor)
  // One more row than is shown tells whether there is another page.
  const search = { address: address?.toLowerCase(), reason, after, limit: limit + 1 }
  const found = await listSuppressions(db, appId, search)
  const page = found.slice(0, limit)
  const last = found.length > limit ? page.at(-1) : undefined
  return { suppressions: page.map(suppressionObject), next_cursor: last ? writeCursor(last) : null }
}

const suppressionObject = ({ address, reason, detail, createdAt, createdBy }: SuppressionRow) => ({
  address,
  reason,
  detail,
  created_at: createdAt.toISOString(),
  created_by: createdBy,
})

const writeCursor = ({ createdAt, address }: SuppressionRow) =>
  Buffer.from(`${createdAt.getTime()} ${address}`).toString('base64url')

function readCursor(cursor: string): SuppressionCursor {
  const [, time, address] = /^(\d{1,15}) ([^\s\0]{1,254})$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? []
  const at = new Date(Number(time))
  if (address === undefined || Number.isNaN(at.getTime()))
    throw invalid('cursor must be the next_cursor of a page before', { field: 'cursor' })
  return { at, address }
}
