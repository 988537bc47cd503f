// Sends a request with an access token. A token that the provider refuses is replaced once; the second answer is final.

import type { AppId } from '../../../lib/ids.ts'
import type { ChannelOutcome } from '../../channel.ts'
import type { ProviderReply } from '../http/exchange.ts'
import type { AccessTokens } from './access-tokens.ts'

type AuthorizedRequest<Account> = {
  appId: AppId
  account: Account
  getAccessToken: AccessTokens<Account>
  post(accessToken: string): Promise<ProviderReply>
  isUnauthenticated(reply: ProviderReply): boolean
  interpret(reply: ProviderReply): ChannelOutcome
}

export async function sendAuthorized<Account>(parts: AuthorizedRequest<Account>): Promise<ChannelOutcome> {
  const { appId, account, getAccessToken: accessFor, post, isUnauthenticated, interpret: judge } = parts
  const access = await accessFor(appId, account)
  if ('outcome' in access) return access.outcome
  const reply = await post(access.token)
  if (!isUnauthenticated(reply)) return judge(reply)
  const renewed = await accessFor(appId, account, access.token)
  return 'outcome' in renewed ? renewed.outcome : judge(await post(renewed.token))
}
