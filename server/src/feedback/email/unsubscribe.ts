// People who unsubscribe from email or subscribe again. Whoever holds an email's reference for that purpose may act for
// the address that the email was sent to.

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

/** The preferences of the address that the email was sent to. Undefined when the delivery is no longer known. */
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
  // A suppressed address gets no email, whatever is chosen on this page.
  return { sender: app?.name ?? '', address, isSubscribed: isReachable(subscription) && suppressed.size === 0 }
}

/**
 * Idempotent. Each unsubscribe is counted once per email, even when an earlier attempt changed the subscription but was
 * not counted. Returns undefined when the delivery is no longer known.
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

/** Serves the HTTP API: the message, and the token that was part of its content, identify the delivery. */
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
