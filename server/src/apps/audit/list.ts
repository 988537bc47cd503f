// The audit log of an organization and all its apps, a page at a time, oldest first.

import { AppError, invalid } from '../../lib/errors.ts'
import { type OrganizationId, SYSTEM_APP_ID } from '../../lib/ids.ts'
import type { SecretBox } from '../../lib/secrets.ts'
import type { AppsContext } from '../context.ts'
import { type AuditFilter, type AuditRow, findAuditEntries } from '../store.ts'
import type { AuditAnswer, AuditQuery } from './schema.ts'

const DAY_MS = 24 * 60 * 60 * 1_000
const LONGEST_MS = 90 * DAY_MS
const DEFAULT_LIMIT = 100

/** The filters and the last entry of the previous page: everything that a cursor carries. */
type Search = {
  start: string
  end: string
  filter: AuditFilter
  isForNobody: boolean
  after?: { at: string; id: string }
}

export const organizationNotFound = () =>
  new AppError('not-found', { code: 'organization-0', title: 'Organization not found' })

export async function listAuditLog(
  { db, clock, secrets }: Pick<AppsContext, 'db' | 'clock' | 'secrets'>,
  organizationId: OrganizationId,
  query: AuditQuery,
): Promise<AuditAnswer> {
  const search =
    query.cursor === undefined ? readSearch(query, clock.now()) : openCursor(secrets, organizationId, query.cursor)
  const { start, end, after, filter } = search
  const limit = query.limit ?? DEFAULT_LIMIT
  const range = {
    start: new Date(start),
    end: new Date(end),
    after: after && { at: new Date(after.at), id: after.id },
  }
  // One more than the page holds, to see whether there are more.
  const found = search.isForNobody ? [] : await findAuditEntries(db, organizationId, range, filter, limit + 1)
  const page = found.slice(0, limit)
  const last = found.length > limit ? page.at(-1) : undefined
  return {
    audit_logs: page.map((row) => eventOf(organizationId, row)),
    has_more: last !== undefined,
    next_cursor: last
      ? sealCursor(secrets, organizationId, { ...search, after: { at: last.at.toISOString(), id: last.id } })
      : null,
  }
}

function readSearch(query: AuditQuery, now: Date): Search {
  if (query.start_time === undefined) throw invalid('start_time is required without a cursor')
  const start = new Date(query.start_time)
  const end = query.end_time === undefined ? now : new Date(query.end_time)
  if (now.getTime() - start.getTime() > LONGEST_MS) throw invalid('start_time must be at most 90 days ago')
  if (query.end_time !== undefined && end <= start) throw invalid('end_time must be after start_time')
  const ids = (list: string[] | undefined) => list?.map((id) => id.toLowerCase())
  return {
    start: start.toISOString(),
    end: end.toISOString(),
    // Actors are keys or the operator, and neither has an email address.
    isForNobody: query.actor_emails !== undefined,
    filter: {
      appIds: ids(query.app_ids),
      actions: query.actions,
      actorIds: ids(query.actor_ids),
      targetTypes: query.target_types,
      targetIds: ids(query.target_ids),
      ipAddresses: query.ip_addresses,
    },
  }
}

const contextOf = (organizationId: OrganizationId) => `audit cursor ${organizationId}`

/** Sealed, so that only cursors given out here are accepted, and their contents need no validation. */
const sealCursor = (secrets: SecretBox, organizationId: OrganizationId, search: Search) =>
  Buffer.from(secrets.seal(JSON.stringify(search), contextOf(organizationId))).toString('base64url')

function openCursor(secrets: SecretBox, organizationId: OrganizationId, cursor: string): Search {
  try {
    return JSON.parse(secrets.open(Buffer.from(cursor, 'base64url').toString(), contextOf(organizationId)))
  } catch {
    throw invalid('cursor is not one that was given out here')
  }
}

const eventOf = (organizationId: OrganizationId, row: AuditRow): AuditAnswer['audit_logs'][number] => ({
  id: row.id,
  occurred_at: row.at.toISOString(),
  action: row.action,
  organization_id: organizationId,
  app_id: row.appId === SYSTEM_APP_ID ? null : row.appId,
  actor: { type: row.actorKind, id: row.actorId },
  targets: [{ type: row.targetType, id: row.targetId }],
  context: { ip: row.actorIp },
  metadata: row.detail,
})
