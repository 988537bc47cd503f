import { subscriptionNotFound } from '../lib/errors.ts'
import type { AppId, SubscriptionId } from '../lib/ids.ts'
import { refuseStranger } from '../users/owner.ts'
import type { Reader } from '../users/read.ts'

/** An SDK that proved who its user is speaks for the devices of that user alone. */
export async function refuseStrangers(
  users: Reader,
  appId: AppId,
  subscriptionId: SubscriptionId,
  provenExternalId: string | undefined,
): Promise<void> {
  if (provenExternalId === undefined) return
  const found = await users.identity(appId, { subscriptionId })
  if (!found) throw subscriptionNotFound()
  refuseStranger({ aliases: new Map(Object.entries(found.aliases ?? {})) }, provenExternalId)
}
