// An app's push settings with its credentials in clear. Only the code that sends may read them, and no answer or log
// may contain them.

import type { AppId } from '../../lib/ids.ts'
import type { SecretBox } from '../../lib/secrets.ts'
import type { Db } from '../../storage/db.ts'
import type { PushSettings } from '../settings.ts'
import { findApp } from '../store.ts'
import { type Credentials, credentialNames } from './read-credential.ts'
import { openCredential } from './sealed.ts'
import { type VapidPair, withVapidPair } from './vapid.ts'

/** Settings and secrets by their names in the API. Keys and certificates are PEM. */
export type OpenedPushSettings = {
  name: string
  vapid: VapidPair
  settings: PushSettings
  secrets: { [Name in keyof Credentials]?: Credentials[Name] }
}

/** Undefined when there is no such app. Called once per batch of messages, not once per message. */
export async function openPushSettings(
  ctx: { db: Db; secrets: SecretBox },
  appId: AppId,
): Promise<OpenedPushSettings | undefined> {
  const stored = await findApp(ctx.db, appId)
  if (!stored) return undefined
  const { name, vapidPublicKey, pushSettings, credentials } = await withVapidPair(ctx, stored)
  const { privateKey = '' } = openCredential(ctx.secrets, appId, credentials, 'vapid') ?? {}
  const secrets = credentialNames
    .filter((name) => credentials[name] !== undefined)
    .map((name) => [name, openCredential(ctx.secrets, appId, credentials, name)])
  return {
    name,
    vapid: { publicKey: vapidPublicKey, privateKey },
    settings: pushSettings,
    secrets: Object.fromEntries(secrets),
  }
}
