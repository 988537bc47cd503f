// Google's access tokens: a signed request buys one for an hour. Whoever waits for one waits for the same.

import { createPrivateKey } from 'node:crypto'
import type { Clock } from '../../lib/clock.ts'
import type { AppId } from '../../lib/ids.ts'
import { boundedMap } from '../bounded.ts'
import type { Outcome } from '../channel.ts'
import type { HttpClient } from './http-client.ts'
import { seconds, signJwt } from './jwt.ts'
import { type Reply, retryAfterMs } from './reply.ts'

/** `privateKey` is PEM. */
export type ServiceAccount = { projectId: string; clientEmail: string; privateKey: string }

/** A token, or why there is none. Nothing has been sent then. */
export type Access = { token: string } | { outcome: Outcome }

const SCOPE = 'https://www.googleapis.com/auth/firebase.messaging'
const KEEP_SECONDS = 55 * 60
/** Before the end that Google named. */
const SPARE_SECONDS = 4 * 60
/** A refusal is not asked for again at once. */
const KEEP_REFUSAL_SECONDS = 10

type Held = { access: Promise<Access>; until: number }

export type AccessTokens = (appId: AppId, account: ServiceAccount, refused?: string) => Promise<Access>

/** `refused` is a token that Google did not take: then another one is fetched, unless somebody else has done so already. */
export function createAccessTokens(clock: Clock, client: HttpClient, tokenUrl: string): AccessTokens {
  const held = boundedMap<string, Held>(1000)
  const { origin, pathname } = new URL(tokenUrl)

  async function fetchToken(appId: AppId, { clientEmail, privateKey }: ServiceAccount, entry: Held): Promise<Access> {
    const now = seconds(clock.now())
    entry.until = now + KEEP_REFUSAL_SECONDS
    const claims = { iss: clientEmail, scope: SCOPE, aud: tokenUrl, iat: now, exp: now + 3600 }
    let assertion: string
    try {
      assertion = signJwt({ alg: 'RS256', typ: 'JWT' }, claims, createPrivateKey(privateKey))
    } catch {
      return { outcome: { kind: 'misconfigured', reason: 'service account not usable' } }
    }
    const grant = new URLSearchParams({ grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion })
    const reply = await client.request({
      appId,
      origin,
      path: pathname,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: grant.toString(),
    })
    const bought = readToken(reply)
    if (!bought) return { outcome: withoutToken(reply, clock.now()) }
    entry.until = now + Math.max(60, Math.min(KEEP_SECONDS, bought.expiresIn - SPARE_SECONDS))
    return { token: bought.token }
  }

  return async (appId, account, refused) => {
    // Of each app: whoever waits for a token waits for nobody else's request.
    const name = `${appId} ${account.clientEmail} ${account.privateKey}`
    const known = held.get(name)
    if (known && seconds(clock.now()) < known.until) {
      const access = await known.access
      const isRefused = 'token' in access && access.token === refused
      if (!isRefused) return access
      // Of several that were refused the same token the first fetches another.
      const current = held.get(name)
      if (current && current !== known) return current.access
    }
    const entry: Held = { access: Promise.resolve({ token: '' }), until: 0 }
    entry.access = fetchToken(appId, account, entry)
    held.set(name, entry)
    return entry.access
  }
}

function readToken(reply: Reply): { token: string; expiresIn: number } | undefined {
  if (reply.kind !== 'answer' || reply.status !== 200) return undefined
  try {
    const { access_token: token, expires_in: expiresIn } = JSON.parse(reply.body)
    const isToken = typeof token === 'string' && /^[\x21-\x7e]+$/.test(token)
    return isToken ? { token, expiresIn: typeof expiresIn === 'number' ? expiresIn : 3600 } : undefined
  } catch {
    return undefined
  }
}

/** No message was handed over, so even a lost answer lets all be tried again. */
function withoutToken(reply: Reply, now: Date): Outcome {
  if (reply.kind !== 'answer') return { kind: 'retry', reason: `access token: ${reply.reason}`, all: true }
  const { status } = reply
  if (status === 400 || status === 401 || status === 403)
    return { kind: 'misconfigured', reason: 'service account refused' }
  const afterMs = retryAfterMs(reply, now)
  return {
    kind: 'retry',
    reason: `access token: status ${status}`,
    all: true,
    ...(afterMs !== undefined && { afterMs }),
  }
}
