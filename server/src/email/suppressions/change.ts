// Adds addresses to the suppression list, singly or from a list, and removes them. Subscriptions are not changed; only
// sending is prevented.

import { actorOf, type RequestOrigin } from '../../apps/audit/actor.ts'
import { insertAuditEntries } from '../../apps/store.ts'
import { AppError, invalid, type Problem } from '../../lib/errors.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { isEmail } from '../../users/subscriptions/subscription.ts'
import type { EmailContext } from '../context.ts'
import type { NewSuppressionsBody } from './schema.ts'
import { deleteSuppression, suppressAddresses } from './store.ts'

type SuppressionContext = Pick<EmailContext, 'db' | 'now' | 'newId'>
type SuppressionInput = { addresses: string[]; reason: 'manual' | 'imported'; detail?: string | undefined }

const MOST_NAMED = 10

/** Returns how many addresses were added; the others were already suppressed. */
export async function addSuppressions(
  ctx: SuppressionContext,
  appId: AppId,
  body: NewSuppressionsBody,
  by: RequestOrigin,
): Promise<number> {
  const { address, addresses } = body
  if ((address === undefined || address === null) === (addresses === undefined || addresses === null))
    throw invalid('Give either address or addresses')
  const given = addresses ?? [address as string]
  const wrong = given.flatMap((it, i): Problem[] =>
    isEmail(it) ? [] : invalid(`${addresses ? `addresses[${i}]` : 'address'} must be an email address`).problems,
  )
  if (wrong.length > 0) throw new AppError('invalid', ...wrong.slice(0, MOST_NAMED))
  const reason = body.reason ?? (addresses ? 'imported' : 'manual')
  return insertSuppressions(ctx, appId, { addresses: given, reason, detail: body.detail ?? undefined }, by)
}

/** The addresses have already been validated. */
export function insertSuppressions(
  ctx: SuppressionContext,
  appId: AppId,
  given: SuppressionInput,
  by: RequestOrigin,
): Promise<number> {
  const { reason, detail } = given
  const list = [...new Set(given.addresses.map((it) => it.toLowerCase()))].map((address) => ({
    address,
    reason,
    detail,
  }))
  const now = ctx.now()
  const actor = actorOf(by)
  return ctx.db.transaction(async (db) => {
    const added = await suppressAddresses(db, appId, list, now, actor.kind === 'system' ? null : actor.id)
    const told = added.length === 1 ? { address: added[0] } : { count: added.length }
    if (added.length > 0) await recordAudit(ctx, db, appId, by, 'suppression.add', { ...told, reason }, now)
    return added.length
  })
}

export function removeSuppression(
  ctx: SuppressionContext,
  appId: AppId,
  address: string,
  by: RequestOrigin,
): Promise<void> {
  const now = ctx.now()
  return ctx.db.transaction(async (db) => {
    const reason = await deleteSuppression(db, appId, address)
    if (reason === undefined)
      throw new AppError('not-found', { code: 'suppression-0', title: 'The address is not suppressed' })
    await recordAudit(ctx, db, appId, by, 'suppression.remove', { address, reason }, now)
  })
}

const recordAudit = (
  { newId }: SuppressionContext,
  db: Db,
  appId: AppId,
  by: RequestOrigin,
  action: string,
  detail: Record<string, unknown>,
  now: Date,
) =>
  insertAuditEntries(
    db,
    appId,
    [{ id: newId(), actor: actorOf(by), action, targetType: 'suppression', targetId: appId, detail }],
    now,
  )
