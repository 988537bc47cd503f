// A request with an access token. One that the provider does not take is replaced once; what it says then is final.

import type { AppId } from '../../../lib/ids.ts'
import type { Outcome } from '../../channel.ts'
import type { Reply } from '../http/exchange.ts'
import type { AccessTokens } from './access-tokens.ts'

type Parts<Account> = {
  appId: AppId
  account: Account
  accessFor: AccessTokens<Account>
  post(accessToken: string): Promise<Reply>
  isUnauthenticated(reply: Reply): boolean
  judge(reply: Reply): Outcome
}

export async function sendAuthorized<Account>(parts: Parts<Account>): Promise<Outcome> {
  const { appId, account, accessFor, post, isUnauthenticated, judge } = parts
  const access = await accessFor(appId, account)
  if ('outcome' in access) return access.outcome
  const reply = await post(access.token)
  if (!isUnauthenticated(reply)) return judge(reply)
  const renewed = await accessFor(appId, account, access.token)
  return 'outcome' in renewed ? renewed.outcome : judge(await post(renewed.token))
}
