// Credentials as they are kept: sealed, and bound to their app and name, so that one moved elsewhere does not open.

import type { AppId } from '../../lib/ids.ts'
import type { SecretBox } from '../../lib/secrets.ts'
import type { Credentials } from './read-credential.ts'

/** `vapid` is made by us; everything else comes from the customer. `sms` is the secret of the provider of texts, `email` that of the relay. */
export type StoredCredentials = Credentials & {
  vapid: { privateKey: string }
  sms: { secret: string }
  email: { secret: string }
}
export type SealedCredentials = { [Name in keyof StoredCredentials]?: string }

const contextOf = (appId: AppId, name: string) => `app ${appId} ${name}`

export const sealCredential = <Name extends keyof StoredCredentials>(
  secrets: SecretBox,
  appId: AppId,
  name: Name,
  value: StoredCredentials[Name],
) => secrets.seal(JSON.stringify(value), contextOf(appId, name))

/** Whether all of them open with this key, without telling what they are. */
export function areOpenable(secrets: SecretBox, appId: AppId, sealed: SealedCredentials): boolean {
  try {
    for (const name of Object.keys(sealed) as (keyof StoredCredentials)[]) openCredential(secrets, appId, sealed, name)
    return true
  } catch {
    return false
  }
}

/** Undefined when it is not set. Throws when SECRET_KEY is not the one it was sealed with. */
export function openCredential<Name extends keyof StoredCredentials>(
  secrets: SecretBox,
  appId: AppId,
  sealed: SealedCredentials,
  name: Name,
): StoredCredentials[Name] | undefined {
  const text = sealed[name]
  return text === undefined ? undefined : JSON.parse(secrets.open(text, contextOf(appId, name)))
}
