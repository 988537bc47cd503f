// Verifies the token with which an SDK proves which user it acts for, in apps that require identity verification.

import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import { AppError } from '../lib/errors.ts'
import type { AppId } from '../lib/ids.ts'
import { codePoints, isStorable } from '../lib/text.ts'

const badToken = () =>
  new AppError('unauthenticated', { code: 'auth-4', title: 'The identity token is not valid or has expired' })

/** Three parts separated by dots. API keys contain no dots. */
export const looksLikeToken = (text: string) => /^[\w-]+\.[\w-]+\.[\w-]+$/.test(text)

type Claims = { iss?: unknown; exp?: unknown; nbf?: unknown; identity?: { external_id?: unknown } | null }

/**
 * Returns the external id that the token vouches for. Throws unless the app's own key signed it and it is valid at
 * `now`.
 */
export function verifyIdentityToken(token: string, app: { id: AppId; publicKey: string }, now: Date): string {
  const [head = '', payload = '', signature = ''] = token.split('.')
  const header = decoded(head) as { alg?: unknown; crit?: unknown } | null
  // The token must not choose how it is verified: the algorithm it names has to match the type of the app's key.
  if (header === null || header.crit !== undefined || header.alg !== algorithmOf(app.publicKey)) throw badToken()
  const data = Buffer.from(`${head}.${payload}`)
  const key = { key: keyOf(app.publicKey), dsaEncoding: 'ieee-p1363' as const }
  if (!verify('sha256', data, key, Buffer.from(signature, 'base64url'))) throw badToken()

  const claims = decoded(payload) as Claims | null
  const seconds = now.getTime() / 1000
  if (claims === null || claims.iss !== app.id) throw badToken()
  if (typeof claims.exp !== 'number' || claims.exp <= seconds) throw badToken()
  if (claims.nbf !== undefined && !(typeof claims.nbf === 'number' && claims.nbf <= seconds)) throw badToken()
  const externalId = claims.identity?.external_id
  if (typeof externalId !== 'string' || !canBeExternalId(externalId)) throw badToken()
  return externalId
}

const MAX_LENGTH = 128
const canBeExternalId = (text: string) => text !== '' && codePoints(text) <= MAX_LENGTH && isStorable(text)

function decoded(part: string): unknown {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString('utf8'))
    return typeof value === 'object' ? value : null
  } catch {
    return null
  }
}

const parsedKeys = new Map<string, KeyObject>()
const MAX_PARSED = 1_000

function keyOf(pem: string): KeyObject {
  let key = parsedKeys.get(pem)
  if (!key) {
    try {
      key = createPublicKey(pem)
    } catch {
      throw badToken()
    }
    if (parsedKeys.size >= MAX_PARSED) parsedKeys.clear()
    parsedKeys.set(pem, key)
  }
  return key
}

function algorithmOf(pem: string): 'ES256' | 'RS256' | 'none of ours' {
  const { asymmetricKeyType, asymmetricKeyDetails } = keyOf(pem)
  if (asymmetricKeyType === 'ec' && asymmetricKeyDetails?.namedCurve === 'prime256v1') return 'ES256'
  return asymmetricKeyType === 'rsa' ? 'RS256' : 'none of ours'
}
