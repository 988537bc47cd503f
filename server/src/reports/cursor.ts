// The cursor between two pages of deliveries.

import { invalid } from '../lib/errors.ts'
import { isUuid } from '../lib/ids.ts'
import type { ReportCursor } from './reported-delivery.ts'

export const writeCursor = ({ subscriptionId, runId }: ReportCursor) =>
  Buffer.from(`${subscriptionId} ${runId}`).toString('base64url')

export function readCursor(cursor: string): ReportCursor {
  const [subscriptionId = '', runId = ''] = Buffer.from(cursor, 'base64url').toString().split(' ')
  if (!isUuid(subscriptionId) || !isUuid(runId)) throw invalid('cursor must be the next_cursor of a page before')
  return { subscriptionId, runId }
}
