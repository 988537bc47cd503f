// People who want no more email, or email again. Who holds the reference of an email for that purpose speaks for
// the address it went to.

import { findApp } from '../../apps/store.ts'
import type { EmailReference } from '../../email/reference.ts'
import { findSuppressed } from '../../email/suppressions/store.ts'
import { invalid } from '../../lib/errors.ts'
import type { AppId } from '../../lib/ids.ts'
import { findEmailDelivery } from '../../messages/email/store.ts'
import { loadReferencedUsers } from '../../users/load-store.ts'
import { setSubscribedByUser } from '../../users/subscriptions/opt-out.ts'
import { isReachable } from '../../users/subscriptions/reachable.ts'
import type { FeedbackContext } from '../context.ts'
import type { Preferences } from './pages.ts'

/** Of the address that an email went to. Undefined when it is not known any more. */
export async function findPreferences(
  { db }: FeedbackContext,
  reference: EmailReference,
): Promise<Preferences | undefined> {
  const delivery = await findEmailDelivery(db, reference)
  if (!delivery) return undefined
  const { subscriptionId } = delivery
  const [user] = await loadReferencedUsers(db, reference.appId, [{ subscriptionId }], {
    subscriptions: true,
    purchases: false,
  })
  const subscription = user?.subscriptions.get(subscriptionId)
  if (!subscription) return undefined
  const address = subscription.token ?? ''
  const [app, suppressed] = await Promise.all([
    findApp(db, reference.appId),
    findSuppressed(db, reference.appId, [address.toLowerCase()]),
  ])
  // Nothing is sent to who is suppressed, whatever they ask for here.
  return { sender: app?.name ?? '', address, isSubscribed: isReachable(subscription) && suppressed.size === 0 }
}

/**
 * The same however often it is asked, and counted once for each mail that it is asked from: also where the one before was heard and
 * not counted. Undefined when it is not known any more whom it is about.
 */
export async function setSubscribed(
  ctx: FeedbackContext,
  reference: EmailReference,
  isWanted: boolean,
  at: Date = ctx.clock.now(),
): Promise<Preferences | undefined> {
  const delivery = await findEmailDelivery(ctx.db, reference)
  if (!delivery) return undefined
  await setSubscribedByUser(ctx.change, reference.appId, delivery.subscriptionId, isWanted)
  if (!isWanted) await ctx.emailFeedback.noteEmail(reference.appId, { reference, at, kind: 'unsubscribed' })
  return findPreferences(ctx, reference)
}

/** As the interface has it: by the message and the token that stood in it. */
export async function unsubscribeWithToken(
  ctx: FeedbackContext,
  appId: AppId,
  messageId: string,
  token: string,
): Promise<void> {
  const reference = ctx.emailFeedback.references.read(token, 'unsubscribe')
  const delivery = reference?.appId === appId ? await findEmailDelivery(ctx.db, reference) : undefined
  if (!reference || delivery?.messageId !== messageId)
    throw invalid('token is not one of this message', { field: 'token' })
  await setSubscribed(ctx, reference, false)
}
