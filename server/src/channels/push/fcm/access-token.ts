// Google's access tokens: a request signed by the service account buys one for an hour.

import { createPrivateKey } from 'node:crypto'
import type { Clock } from '../../../lib/clock.ts'
import type { HttpClient } from '../http/client.ts'
import { seconds, signJwt } from '../jwt.ts'
import { type AccessTokens, createTokens } from '../oauth/access-tokens.ts'

/** `privateKey` is PEM. */
export type ServiceAccount = { projectId: string; clientEmail: string; privateKey: string }

const SCOPE = 'https://www.googleapis.com/auth/firebase.messaging'

export const createAccessTokens = (clock: Clock, client: HttpClient, tokenUrl: string): AccessTokens<ServiceAccount> =>
  createTokens({
    clock,
    client,
    tokenUrl,
    nameOf: ({ clientEmail, privateKey }) => `${clientEmail} ${privateKey}`,
    grantFor({ clientEmail, privateKey }, now) {
      const iat = seconds(now)
      const claims = { iss: clientEmail, scope: SCOPE, aud: tokenUrl, iat, exp: iat + 3600 }
      const assertion = signJwt({ alg: 'RS256', typ: 'JWT' }, claims, createPrivateKey(privateKey))
      return { grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion }
    },
    accountWord: 'service account',
  })
