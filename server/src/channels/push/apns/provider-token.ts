// The token that authenticates a team with Apple. It is valid for an hour, and must not be renewed more often than
// every 20 minutes.

import { createPrivateKey } from 'node:crypto'
import type { Clock } from '../../../lib/clock.ts'
import { createLruMap } from '../../lru-map.ts'
import { signJwt, toUnixSeconds } from '../jwt.ts'

/** `key` is the content of Apple's p8 file. */
export type ApnsKey = { teamId: string; keyId: string; key: string }

const RENEW_SECONDS = 50 * 60
const SOONEST_SECONDS = 20 * 60

export type ApnsTokens = {
  /** Throws when the key is invalid. */
  get(key: ApnsKey): string
  /**
   * Called after Apple said that this token has expired. Returns undefined if the token is too young for that, because
   * then a clock is wrong.
   */
  renew(key: ApnsKey, refused: string): string | undefined
}

export function createApnsTokens(clock: Clock): ApnsTokens {
  const tokens = createLruMap<string, { token: string; issuedAt: number }>(1000)
  const nameOf = ({ teamId, keyId, key }: ApnsKey) => `${teamId} ${keyId} ${key}`

  function issue(key: ApnsKey): string {
    const issuedAt = toUnixSeconds(clock.now())
    const token = signJwt(
      { alg: 'ES256', kid: key.keyId },
      { iss: key.teamId, iat: issuedAt },
      createPrivateKey(key.key),
    )
    tokens.set(nameOf(key), { token, issuedAt })
    return token
  }

  return {
    get(key) {
      const known = tokens.get(nameOf(key))
      return known && toUnixSeconds(clock.now()) - known.issuedAt < RENEW_SECONDS ? known.token : issue(key)
    },
    renew(key, refused) {
      const known = tokens.get(nameOf(key))
      if (known && known.token !== refused) return known.token
      if (known && toUnixSeconds(clock.now()) - known.issuedAt < SOONEST_SECONDS) return undefined
      return issue(key)
    },
  }
}
