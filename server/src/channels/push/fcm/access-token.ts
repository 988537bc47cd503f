// Google's access tokens: a request signed by the service account returns one that is valid for an hour.

import { createPrivateKey } from 'node:crypto'
import type { Clock } from '../../../lib/clock.ts'
import type { PushHttpClient } from '../http/client.ts'
import { signJwt, toUnixSeconds } from '../jwt.ts'
import { type AccessTokens, createAccessTokens } from '../oauth/access-tokens.ts'

/** `privateKey` is in PEM. */
export type GoogleServiceAccount = { projectId: string; clientEmail: string; privateKey: string }

const SCOPE = 'https://www.googleapis.com/auth/firebase.messaging'

export const createServiceAccountTokens = (
  clock: Clock,
  client: PushHttpClient,
  tokenUrl: string,
): AccessTokens<GoogleServiceAccount> =>
  createAccessTokens({
    clock,
    client,
    tokenUrl,
    nameOf: ({ clientEmail, privateKey }) => `${clientEmail} ${privateKey}`,
    grantFor({ clientEmail, privateKey }, now) {
      const iat = toUnixSeconds(now)
      const claims = { iss: clientEmail, scope: SCOPE, aud: tokenUrl, iat, exp: iat + 3600 }
      const assertion = signJwt({ alg: 'RS256', typ: 'JWT' }, claims, createPrivateKey(privateKey))
      return { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion }
    },
    accountWord: 'service account',
  })
