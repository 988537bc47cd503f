// Sets, shows and removes an app's email settings. The password is never shown.

import { isDeepStrictEqual } from 'node:util'
import { actorOf, type RequestOrigin } from '../../apps/audit/actor.ts'
import { sealCredential } from '../../apps/credentials/sealed.ts'
import type { EmailSettings } from '../../apps/email-settings.ts'
import { MASK } from '../../apps/schema.ts'
import { findApp, insertAuditEntries, lockApp, notifyChange, updateEmailSettings } from '../../apps/store.ts'
import { appNotFound, forbidden, invalid } from '../../lib/errors.ts'
import type { AppId } from '../../lib/ids.ts'
import type { EmailContext } from '../context.ts'
import { resolveEmailRoute } from '../find-route.ts'
import { findPausedSince } from '../pause.ts'
import { isSameRelay, readEmailSettings } from './read-settings.ts'
import type { EmailSettingsAnswer, EmailSettingsBody } from './schema.ts'

export async function viewEmailSettings(ctx: EmailContext, appId: AppId): Promise<EmailSettingsAnswer> {
  const app = await findApp(ctx.db, appId)
  if (!app) throw appNotFound()
  const settings = app.emailSettings
  const relay = settings?.relay ?? null
  return {
    mode: settings?.mode ?? null,
    relay: relay && { ...relay, password: app.credentials.email === undefined ? null : MASK },
    from_address: settings?.from_address ?? null,
    from_name: settings?.from_name ?? null,
    way: resolveEmailRoute(ctx, appId, settings, app.credentials).kind,
    paused_since: (await findPausedSince(ctx.db, appId))?.toISOString() ?? null,
  }
}

/** Replaces the existing settings. */
export async function setEmailSettings(
  ctx: EmailContext,
  appId: AppId,
  body: EmailSettingsBody,
  by: RequestOrigin,
): Promise<void> {
  const { settings, password } = readEmailSettings(ctx, body)
  // Direct mail is sent in the name of this machine, so its operator must allow it.
  if (
    settings.mode === 'direct' &&
    ctx.serverEmail.route !== 'direct' &&
    !['organization', 'operator'].includes(by.caller.kind)
  )
    throw forbidden('mode "direct" is for organization keys, where the server itself does not send directly')
  await changeEmailSettings(ctx, appId, by, 'email_settings.update', (before, sealed) => {
    if (!settings.relay || settings.relay.username === null) return { settings, sealed: undefined }
    if (password !== undefined)
      return { settings, sealed: sealCredential(ctx.secrets, appId, 'email', { secret: password }) }
    if (before?.relay && sealed && isSameRelay(before.relay, settings.relay)) return { settings, sealed }
    throw invalid('relay.password is required: it was not given yet, or for another place')
  })
}

export const removeEmailSettings = (ctx: EmailContext, appId: AppId, by: RequestOrigin) =>
  changeEmailSettings(ctx, appId, by, 'email_settings.delete', () => ({ settings: null, sealed: undefined }))

type StoredEmailSettings = { settings: EmailSettings | null; sealed: string | undefined }

async function changeEmailSettings(
  { db, now, newId }: EmailContext,
  appId: AppId,
  by: RequestOrigin,
  action: string,
  decide: (before: EmailSettings | null, sealed: string | undefined) => StoredEmailSettings,
): Promise<void> {
  const at = now()
  await db.transaction(async (db) => {
    const app = await lockApp(db, appId)
    if (!app) throw appNotFound()
    const { email: sealed, ...others } = app.credentials
    const after = decide(app.emailSettings, sealed)
    const fields = changedFields(app.emailSettings, after.settings)
    if (after.sealed !== sealed) fields.push('password')
    if (fields.length === 0) return
    const credentials = after.sealed === undefined ? others : { ...others, email: after.sealed }
    await updateEmailSettings(db, appId, after.settings, credentials, at)
    await insertAuditEntries(
      db,
      appId,
      [{ id: newId(), actor: actorOf(by), action, targetType: 'app', targetId: appId, detail: { fields } }],
      at,
    )
    await notifyChange(db, 'app', appId)
  })
}

const FIELDS = ['mode', 'relay', 'from_address', 'from_name'] as const

const changedFields = (before: EmailSettings | null, after: EmailSettings | null): string[] =>
  FIELDS.filter((name) => !isDeepStrictEqual(before?.[name] ?? null, after?.[name] ?? null))
