// Who is notified when something of an app stops. There are no user accounts yet, so an administrator is only an
// address.

import { actorOf, type RequestOrigin } from '../apps/audit/actor.ts'
import { insertAuditEntries, lockApp } from '../apps/store.ts'
import { AppError, appNotFound, invalid } from '../lib/errors.ts'
import type { AppId } from '../lib/ids.ts'
import { newWebhookSecret } from '../lib/secrets.ts'
import type { Db } from '../storage/db.ts'
import { isEmail } from '../users/subscriptions/subscription.ts'
import type { SendingContext } from './context.ts'
import {
  type Administrator,
  type AdministratorId,
  deleteAdministrator,
  findAdministrators,
  insertAdministrator,
} from './notice-store.ts'
import { sealedWebhookSecret } from './webhook-secret.ts'

const MAX_ADMINISTRATORS = 50

export type NewAdministrator = { email?: string | null | undefined; webhookUrl?: string | null | undefined }
export type AddedAdministrator = Omit<Administrator, 'webhookSecret'> & { webhookSecret: string | null }

/** Returns the secret, only this once. */
export function addAdministrator(
  { db, now, newId, secrets }: SendingContext,
  appId: AppId,
  given: NewAdministrator,
  by: RequestOrigin,
): Promise<AddedAdministrator> {
  const email = given.email?.toLowerCase() || null
  const webhookUrl = given.webhookUrl || null
  if (email === null && webhookUrl === null)
    throw invalid('An administrator needs an email or a webhook_url', { field: 'email' })
  if (email !== null && !isEmail(email)) throw invalid('email must be an email address', { field: 'email' })
  if (webhookUrl !== null && !isHttps(webhookUrl))
    throw invalid('webhook_url must be an https address, as https://example.com/notices', { field: 'webhook_url' })
  const [id, at] = [newId(), now()]
  const secret = webhookUrl === null ? null : newWebhookSecret()
  const administrator = { id, email, webhookUrl, createdAt: at }
  return db.transaction(async (db) => {
    // Counted under the lock of the app, so that concurrent requests cannot exceed the limit.
    if (!(await lockApp(db, appId))) throw appNotFound()
    if ((await findAdministrators(db, appId)).length >= MAX_ADMINISTRATORS)
      throw conflict(`An app can have at most ${MAX_ADMINISTRATORS} administrators`)
    const webhookSecret = secret && sealedWebhookSecret(secrets, appId, id).seal(secret)
    if (!(await insertAdministrator(db, appId, { ...administrator, webhookSecret })))
      throw conflict('The app has an administrator with this address already')
    const detail = { ...(email !== null && { email }), ...(webhookUrl !== null && { webhook: true }) }
    await recordAudit(db, appId, by, 'administrator.add', id, detail, { newId, at })
    return { ...administrator, webhookSecret: secret }
  })
}

export function removeAdministrator(
  { db, now, newId }: Pick<SendingContext, 'db' | 'now' | 'newId'>,
  appId: AppId,
  id: AdministratorId,
  by: RequestOrigin,
): Promise<void> {
  const at = now()
  return db.transaction(async (db) => {
    if (!(await deleteAdministrator(db, appId, id)))
      throw new AppError('not-found', { code: 'administrator-0', title: 'Administrator not found' })
    await recordAudit(db, appId, by, 'administrator.remove', id, {}, { newId, at })
  })
}

/** Where the address leads is checked when something is sent there. */
function isHttps(text: string): boolean {
  const url = URL.parse(text)
  return url?.protocol === 'https:' && url.username === '' && url.password === ''
}

const conflict = (title: string) => new AppError('conflict', { code: 'administrator-1', title })

const recordAudit = (
  db: Db,
  appId: AppId,
  by: RequestOrigin,
  action: string,
  targetId: AdministratorId,
  detail: Record<string, unknown>,
  { newId, at }: { newId: () => string; at: Date },
) =>
  insertAuditEntries(
    db,
    appId,
    [{ id: newId(), actor: actorOf(by), action, targetType: 'administrator', targetId, detail }],
    at,
  )
