// Stand-ins for the endpoints where Huawei, Amazon and Microsoft issue access tokens for a client id and its secret.

import { randomBytes } from 'node:crypto'
import type { Clock } from '../../lib/clock.ts'
import type { SinkRequest, SinkService } from '../service.ts'

export type TokenShop = {
  host: string
  path: string
  /** Undefined if the provider requires none. */
  scope?: string
  lifeSeconds: number
}

export const HUAWEI_TOKENS: TokenShop = {
  host: 'oauth-login.cloud.huawei.com',
  path: '/oauth2/v3/token',
  lifeSeconds: 3600,
}
export const AMAZON_TOKENS: TokenShop = {
  host: 'api.amazon.com',
  path: '/auth/o2/token',
  scope: 'messaging:push',
  lifeSeconds: 3600,
}
export const MICROSOFT_TOKENS: TokenShop = {
  host: 'login.live.com',
  path: '/accesstoken.srf',
  scope: 'notify.windows.com',
  lifeSeconds: 86_400,
}

export type ClientTokens = {
  service: SinkService
  isFor(request: SinkRequest): boolean
  isValid(authorization: string | undefined): boolean
  sold(): number
  revokeAll(): void
}

/** A client that requests tokens only when it needs them never has more valid ones than this. */
const MOST_TOKENS = 10_000

/** `account`: the only account that is accepted. Without it, all accounts are. */
export function createClientTokenStore(
  { path: shopPath, scope, lifeSeconds }: TokenShop,
  { clock, account }: { clock: Pick<Clock, 'now'>; account?: { clientId: string; secret: string } | undefined },
): ClientTokens {
  const validUntil = new Map<string, number>()
  let sold = 0

  function isGood({ method, headers, body }: SinkRequest): boolean {
    const form = new URLSearchParams(body.toString('utf8'))
    const [id, secret] = [form.get('client_id'), form.get('client_secret')]
    return (
      method === 'POST' &&
      headers['content-type']?.startsWith('application/x-www-form-urlencoded') === true &&
      form.get('grant_type') === 'client_credentials' &&
      (form.get('scope') ?? undefined) === scope &&
      Boolean(id && secret) &&
      (account === undefined || (id === account.clientId && secret === account.secret))
    )
  }

  return {
    isFor: ({ path }) => path === shopPath,
    isValid(authorization) {
      const [, token = ''] = /^Bearer (.+)$/.exec(authorization ?? '') ?? []
      return (validUntil.get(token) ?? 0) > clock.now().getTime()
    },
    sold: () => sold,
    revokeAll: () => validUntil.clear(),
    service: {
      addressOf: ({ path }) => path,
      check: (request) =>
        isGood(request) ? undefined : { status: 400, body: JSON.stringify({ error: 'invalid_client' }) },
      accept() {
        const token = randomBytes(24).toString('hex')
        const [oldest] = validUntil.keys()
        if (validUntil.size >= MOST_TOKENS && oldest !== undefined) validUntil.delete(oldest)
        validUntil.set(token, clock.now().getTime() + lifeSeconds * 1_000)
        sold++
        return {
          status: 200,
          headers: { 'content-type': 'application/json; charset=UTF-8' },
          body: JSON.stringify({ access_token: token, expires_in: lifeSeconds, token_type: 'Bearer' }),
        }
      },
    },
  }
}
