// DKIM key pairs. They are generated off the event loop, and their private halves are sealed and bound to their place.

import { createPrivateKey, generateKeyPair, type KeyObject, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { findApp } from '../../apps/store.ts'
import { appNotFound } from '../../lib/errors.ts'
import type { AppId } from '../../lib/ids.ts'
import type { SecretBox } from '../../lib/secrets.ts'
import type { EmailContext } from '../context.ts'
import type { Algorithm, StoredDkimKey } from './domain.ts'
import type { DkimKeyPair } from './rsa-key-pool.ts'

/** The form that the channel expects. */
export type SigningKey = { domain: string; selector: string; algorithm: Algorithm; privateKey: KeyObject }

type DkimKeyContext = Pick<EmailContext, 'db' | 'secrets' | 'rsaKeys' | 'openedKeys'>

const sealContextOf = (appId: AppId, domain: string, selector: string) => `app ${appId} dkim ${domain} ${selector}`

/** Makes one key of each given algorithm. */
export async function makeKeys(
  { db, secrets, rsaKeys }: Pick<DkimKeyContext, 'db' | 'secrets' | 'rsaKeys'>,
  appId: AppId,
  domain: string,
  kinds: readonly Algorithm[],
  state: 'active' | 'next',
  now: Date,
): Promise<StoredDkimKey[]> {
  const app = await findApp(db, appId)
  if (!app) throw appNotFound()
  const keys: StoredDkimKey[] = []
  for (const algorithm of kinds) {
    const { publicKey, privatePem } =
      algorithm === 'rsa' ? await rsaKeys.take(app.organizationId) : await makeEd25519Pair()
    const selector = newSelector()
    const sealed = secrets.seal(privatePem, sealContextOf(appId, domain, selector))
    const publicText = publicTextOf(publicKey, algorithm)
    keys.push({ selector, algorithm, public: publicText, sealed, state, created_at: now.toISOString() })
  }
  return keys
}

/**
 * Selectors are never reused, because two apps may send from one domain and a domain may be removed and added again.
 */
const newSelector = () => `c${randomBytes(5).toString('hex')}`

const generate = promisify(generateKeyPair)

async function makeEd25519Pair(): Promise<DkimKeyPair> {
  const { publicKey, privateKey } = await generate('ed25519', {
    publicKeyEncoding: { type: 'spki', format: 'der' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
  return { publicKey, privatePem: privateKey }
}

/** RFC 6376 publishes an RSA key as SubjectPublicKeyInfo; RFC 8463 publishes an Ed25519 key as its bare 32 bytes. */
const publicTextOf = (info: Buffer, algorithm: Algorithm) =>
  (algorithm === 'rsa' ? info : info.subarray(-32)).toString('base64')

/** Whether all keys can be opened with the current secret key, without exposing them. */
export function areKeysOpenable(
  secrets: SecretBox,
  appId: AppId,
  domain: string,
  keys: readonly StoredDkimKey[],
): boolean {
  try {
    for (const { selector, sealed } of keys)
      if (sealed !== null) secrets.open(sealed, sealContextOf(appId, domain, selector))
    return true
  } catch {
    return false
  }
}

const MAX_OPENED_KEYS = 1_000

/** Opened keys are cached, because parsing an RSA key costs more than signing with it. */
export function openKeys(
  { secrets, openedKeys }: Pick<DkimKeyContext, 'secrets' | 'openedKeys'>,
  appId: AppId,
  domain: string,
  keys: readonly StoredDkimKey[],
): SigningKey[] {
  return keys.flatMap(({ selector, algorithm, sealed }): SigningKey[] => {
    if (sealed === null) return []
    let privateKey = openedKeys.get(sealed)
    if (!privateKey) {
      privateKey = createPrivateKey(secrets.open(sealed, sealContextOf(appId, domain, selector)))
      if (openedKeys.size >= MAX_OPENED_KEYS) openedKeys.clear()
      openedKeys.set(sealed, privateKey)
    }
    return [{ domain, selector, algorithm, privateKey }]
  })
}
