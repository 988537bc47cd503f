// The SMS provider of an app: setting it, showing it without its secret, removing it, and reading it in clear for
// sending.

import { appNotFound, invalid } from '../../lib/errors.ts'
import { type AppId, newId } from '../../lib/ids.ts'
import { ownProperty } from '../../lib/own-property.ts'
import type { SecretBox } from '../../lib/secrets.ts'
import type { Db } from '../../storage/db.ts'
import type { Actor } from '../app.ts'
import type { AppsContext } from '../context.ts'
import { openCredential, sealCredential } from '../credentials/sealed.ts'
import { MASK } from '../schema.ts'
import { findApp, insertAuditEntries, lockApp, notifyChange, updateSmsSettings } from '../store.ts'
import { isSameAccount, readSms, type SmsSettings, secretName } from './read.ts'
import type { SmsAnswer, SmsBody } from './schema.ts'

type SmsContext = Pick<AppsContext, 'db' | 'clock' | 'secrets'>

/** The address that Twilio calls for this app; undefined while the server has no public URL. */
export const twilioCallbackUrl = (publicUrl: string | undefined, appId: AppId) =>
  publicUrl && `${publicUrl.replace(/\/+$/, '')}/feedback/twilio/${appId}`

export async function viewSms(
  { db, publicUrl }: Pick<AppsContext, 'db' | 'publicUrl'>,
  appId: AppId,
): Promise<SmsAnswer> {
  const app = await findApp(db, appId)
  if (!app) throw appNotFound()
  const settings = app.smsSettings
  if (!settings) return { kind: null }
  return {
    ...settings,
    [secretName(settings.kind)]: MASK,
    ...(settings.kind === 'twilio' && { callback_url: twilioCallbackUrl(publicUrl, appId) ?? null }),
  }
}

export async function setSms(ctx: SmsContext, appId: AppId, body: SmsBody, actor: Actor): Promise<void> {
  const { settings, secret } = readSms(body)
  await change(ctx, appId, actor, 'sms_settings.update', (before, sealed) => {
    if (secret !== undefined) return { settings, sealed: sealCredential(ctx.secrets, appId, 'sms', { secret }) }
    if (before && sealed && isSameAccount(before, settings)) return { settings, sealed }
    throw invalid(`${secretName(body.kind)} is required: it was not given yet, or for another place`)
  })
}

export const removeSms = (ctx: SmsContext, appId: AppId, actor: Actor) =>
  change(ctx, appId, actor, 'sms_settings.delete', () => undefined)

type StoredSms = { settings: SmsSettings; sealed: string }

async function change(
  { db, clock }: SmsContext,
  appId: AppId,
  actor: Actor,
  action: string,
  decide: (before: SmsSettings | null, sealed: string | undefined) => StoredSms | undefined,
): Promise<void> {
  const now = clock.now()
  await db.transaction(async (db) => {
    const app = await lockApp(db, appId)
    if (!app) throw appNotFound()
    const { sms: sealed, ...others } = app.credentials
    const after = decide(app.smsSettings, sealed)
    const fields = changedFields({ ...app.smsSettings }, { ...after?.settings })
    if (after?.sealed !== sealed) fields.push('secret')
    if (fields.length === 0) return
    const credentials = after ? { ...others, sms: after.sealed } : others
    await updateSmsSettings(db, appId, after?.settings ?? null, credentials, now)
    const detail = { fields }
    await insertAuditEntries(
      db,
      appId,
      [{ id: newId(), actor, action, targetType: 'app', targetId: appId, detail }],
      now,
    )
    await notifyChange(db, 'app', appId)
  })
}

function changedFields(before: Record<string, unknown>, after: Record<string, unknown>): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...names].filter(
    (name) => JSON.stringify(ownProperty(before, name) ?? null) !== JSON.stringify(ownProperty(after, name) ?? null),
  )
}

/** The settings with their secret in clear, which no answer or log may contain. */
export type SmsProvider = SmsSettings & { secret: string }

/**
 * Undefined when the app does not exist or has no provider. Called once per batch of messages, not once per message.
 */
export async function readSmsProvider(
  { db, secrets }: { db: Db; secrets: SecretBox },
  appId: AppId,
): Promise<SmsProvider | undefined> {
  const app = await findApp(db, appId)
  const opened = app && openCredential(secrets, appId, app.credentials, 'sms')
  return app?.smsSettings && opened ? { ...app.smsSettings, secret: opened.secret } : undefined
}
