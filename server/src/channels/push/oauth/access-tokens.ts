// OAuth access tokens: each is requested with a grant, and cached until shortly before it expires. Concurrent callers
// share one request.

import type { Clock } from '../../../lib/clock.ts'
import type { AppId } from '../../../lib/ids.ts'
import type { ChannelOutcome } from '../../channel.ts'
import { createLruMap } from '../../lru-map.ts'
import type { PushHttpClient } from '../http/client.ts'
import { type ProviderReply, retryAfterMs } from '../http/exchange.ts'
import { toUnixSeconds } from '../jwt.ts'

/** A token, or the outcome if there is none. No message has been sent then. */
export type AccessTokenResult = { token: string } | { outcome: ChannelOutcome }

const KEEP_SECONDS = 55 * 60
/** How long before its expiry a token is replaced. */
const SPARE_SECONDS = 4 * 60
/** How long a refusal is cached, so that it is not requested again at once. */
const KEEP_REFUSAL_SECONDS = 10

type CachedToken = { access: Promise<AccessTokenResult>; until: number }

export type AccessTokenOptions<Account> = {
  clock: Clock
  client: PushHttpClient
  tokenUrl: string
  /**
   * Identifies an account, including its secret: after a change of the secret, the old one's token must not be used.
   */
  nameOf(account: Account): string
  /** The form that requests a token. Throws if the account is unusable. */
  grantFor(account: Account, now: Date): Record<string, string>
  /** What reasons call the account, such as "service account". */
  accountWord: string
}

/**
 * `refused` is a token that the provider refused. Another one is then fetched, unless a concurrent caller has already
 * done so.
 */
export type AccessTokens<Account> = (appId: AppId, account: Account, refused?: string) => Promise<AccessTokenResult>

export function createAccessTokens<Account>({
  clock,
  client,
  tokenUrl,
  nameOf,
  grantFor,
  accountWord,
}: AccessTokenOptions<Account>): AccessTokens<Account> {
  const held = createLruMap<string, CachedToken>(1000)
  const { origin, pathname } = new URL(tokenUrl)

  async function fetchToken(appId: AppId, account: Account, entry: CachedToken): Promise<AccessTokenResult> {
    const now = toUnixSeconds(clock.now())
    entry.until = now + KEEP_REFUSAL_SECONDS
    let grant: Record<string, string>
    try {
      grant = grantFor(account, clock.now())
    } catch {
      return { outcome: { kind: 'misconfigured', reason: `${accountWord} not usable` } }
    }
    const reply = await client.request({
      appId,
      origin,
      path: pathname,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(grant).toString(),
    })
    const bought = readToken(reply)
    if (!bought) return { outcome: withoutToken(reply, clock.now(), accountWord) }
    entry.until = now + Math.max(60, Math.min(KEEP_SECONDS, bought.expiresIn - SPARE_SECONDS))
    return { token: bought.token }
  }

  return async (appId, account, refused) => {
    // Each app has its own entry: its callers never wait for another app's request.
    const name = `${appId} ${nameOf(account)}`
    const known = held.get(name)
    if (known && toUnixSeconds(clock.now()) < known.until) {
      const access = await known.access
      const isRefused = 'token' in access && access.token === refused
      if (!isRefused) return access
      // If several callers were refused the same token, the first one fetches another.
      const current = held.get(name)
      if (current && current !== known) return current.access
    }
    const entry: CachedToken = { access: Promise.resolve({ token: '' }), until: 0 }
    entry.access = fetchToken(appId, account, entry)
    held.set(name, entry)
    return entry.access
  }
}

function readToken(reply: ProviderReply): { token: string; expiresIn: number } | undefined {
  if (reply.kind !== 'answer' || reply.status !== 200) return undefined
  try {
    const { access_token: token, expires_in: expiresIn } = JSON.parse(reply.body)
    const isToken = typeof token === 'string' && /^[\x21-\x7e]+$/.test(token)
    return isToken ? { token, expiresIn: typeof expiresIn === 'number' ? expiresIn : 3600 } : undefined
  } catch {
    return undefined
  }
}

/** No message was handed over, so even if the answer was lost, everything can be retried. */
function withoutToken(reply: ProviderReply, now: Date, accountWord: string): ChannelOutcome {
  if (reply.kind !== 'answer') return { kind: 'retry', reason: `access token: ${reply.reason}`, pausesProvider: true }
  const { status } = reply
  if (status === 400 || status === 401 || status === 403)
    return { kind: 'misconfigured', reason: `${accountWord} refused` }
  const afterMs = retryAfterMs(reply, now)
  return {
    kind: 'retry',
    reason: `access token: status ${status}`,
    pausesProvider: true,
    ...(afterMs !== undefined && { afterMs }),
  }
}
