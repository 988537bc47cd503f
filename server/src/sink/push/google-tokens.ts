// A stand-in for Google's token endpoint: a signed request returns an access token that is valid for an hour.

import { createPublicKey, randomBytes } from 'node:crypto'
import type { Clock } from '../../lib/clock.ts'
import type { SinkRequest, SinkService } from '../service.ts'
import { readJwt } from './jwt.ts'

export type GoogleTokensSettings = {
  clock: Pick<Clock, 'now'>
  /** The only account that is accepted. Without it, all accounts are. */
  account?: { clientEmail: string; privateKey: string } | undefined
}

export type GoogleTokens = {
  service: SinkService
  isValid(accessToken: string): boolean
  sold(): number
  revokeAll(): void
}

export const TOKEN_HOST = 'oauth2.googleapis.com'
export const TOKEN_PATH = '/token'
/** A client that requests tokens only when it needs them never has more valid ones than this. */
const MOST_TOKENS = 10_000

export const isForTokens = ({ path }: SinkRequest) => path === TOKEN_PATH

export function createGoogleTokens({ clock, account }: GoogleTokensSettings): GoogleTokens {
  const publicKey = account && createPublicKey(account.privateKey)
  const validUntil = new Map<string, number>()
  let sold = 0

  function isGood(body: Buffer): boolean {
    const grant = new URLSearchParams(body.toString('utf8'))
    const jwt = readJwt(grant.get('assertion') ?? '')
    const { iss, scope, aud, iat, exp } = jwt?.claims ?? {}
    const scopes = String(scope).split(' ')
    return (
      grant.get('grant_type') === 'urn:ietf:params:oauth:grant-type:jwt-bearer' &&
      jwt?.header.alg === 'RS256' &&
      iss === (account?.clientEmail ?? iss) &&
      scopes.some((it) => /\/auth\/(firebase\.messaging|cloud-platform)$/.test(it)) &&
      /^https:\/\/(oauth2|accounts|www)\.google(apis)?\.com\//.test(String(aud)) &&
      Number(exp) > clock.now().getTime() / 1000 &&
      Number(exp) - Number(iat) <= 3600 &&
      (publicKey === undefined || jwt.isSignedBy(publicKey))
    )
  }

  return {
    isValid: (token) => (validUntil.get(token) ?? 0) > clock.now().getTime(),
    sold: () => sold,
    revokeAll: () => validUntil.clear(),
    service: {
      addressOf: ({ path }) => path,
      check: ({ body }) =>
        isGood(body) ? undefined : { status: 400, body: JSON.stringify({ error: 'invalid_grant' }) },
      accept() {
        const token = `ya29.${randomBytes(16).toString('hex')}`
        const [oldest] = validUntil.keys()
        if (validUntil.size >= MOST_TOKENS && oldest !== undefined) validUntil.delete(oldest)
        validUntil.set(token, clock.now().getTime() + 3_599_000)
        sold++
        return {
          status: 200,
          headers: { 'content-type': 'application/json; charset=UTF-8' },
          body: JSON.stringify({ access_token: token, expires_in: 3599, token_type: 'Bearer' }),
        }
      },
    },
  }
}
