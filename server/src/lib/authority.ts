// On whose behalf a request acts. A key acts for the app's own back end. An SDK has no key: what it may see and do
// depends on what it can prove (docs/decisions/0012-keyless-door.md).

import { forbidden } from './errors.ts'

export type Authority =
  | { kind: 'key' }
  /** An SDK that proves nothing. Its only evidence is what it knows: ids that nobody can guess, and push tokens. */
  | { kind: 'device' }
  /** An SDK with a valid identity token: it acts for the user with this external id and for nobody else. */
  | { kind: 'verified'; externalId: string }

export const KEY: Authority = { kind: 'key' }

export function authorityOf(caller: { kind: string; externalId?: string | undefined }): Authority {
  if (caller.kind !== 'sdk') return KEY
  return caller.externalId === undefined ? { kind: 'device' } : { kind: 'verified', externalId: caller.externalId }
}

export const forAnotherUser = () => forbidden('The identity token is for another user')
export const needsIdentityToken = (what: string) => forbidden(`${what} needs an identity token or an API key`)
