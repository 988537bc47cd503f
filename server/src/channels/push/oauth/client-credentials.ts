// Access tokens for a client id and its secret (OAuth 2.0, client credentials), as Huawei, Amazon and Microsoft issue
// them.

import type { Clock } from '../../../lib/clock.ts'
import type { PushHttpClient } from '../http/client.ts'
import { type AccessTokens, createAccessTokens } from './access-tokens.ts'

export type OAuthClient = { clientId: string; secret: string }

export const createClientCredentialsTokens = (
  clock: Clock,
  client: PushHttpClient,
  tokenUrl: string,
  scope?: string,
): AccessTokens<OAuthClient> =>
  createAccessTokens({
    clock,
    client,
    tokenUrl,
    nameOf: ({ clientId, secret }) => `${clientId} ${secret}`,
    grantFor: ({ clientId, secret }) => ({
      grant_type: 'client_credentials',
      client_id: clientId,
      client_secret: secret,
      ...(scope !== undefined && { scope }),
    }),
    accountWord: 'client secret',
  })
