import type { Authority } from '../lib/authority.ts'
import { subscriptionNotFound } from '../lib/errors.ts'
import type { AppId, SubscriptionId } from '../lib/ids.ts'
import { refuseForeignDevice } from '../users/devices/authorize.ts'
import type { UserReader } from '../users/read.ts'

/** An SDK with a verified user may act only for the devices of that user. */
export async function checkDeviceOwner(
  users: UserReader,
  appId: AppId,
  subscriptionId: SubscriptionId,
  authority: Authority,
): Promise<void> {
  if (authority.kind !== 'verified') return
  const found = await users.identity(appId, { subscriptionId })
  if (!found) throw subscriptionNotFound()
  refuseForeignDevice({ aliases: new Map(Object.entries(found.aliases ?? {})) }, authority)
}
