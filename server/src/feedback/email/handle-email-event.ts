// Follow-ups to email feedback. Each of them is safe to repeat, because a provider that gets no answer reports the same
// event again.

import { sumOfApp } from '../../email/metrics/store.ts'
import { coverWindow } from '../../email/metrics/time-unit.ts'
import { pauseForComplaints } from '../../email/pause.ts'
import type { EmailReference } from '../../email/reference.ts'
import { suppressAddresses } from '../../email/suppressions/store.ts'
import type { AppId } from '../../lib/ids.ts'
import type { EmailFeedback, RecordedEmailFeedback } from '../../messages/email/record-feedback.ts'
import { findEmailDelivery } from '../../messages/email/store.ts'
import { findMessage } from '../../messages/store.ts'
import { setSubscribedByUser } from '../../users/subscriptions/opt-out.ts'
import { unsubscribeAddress } from '../../users/subscriptions/unsubscribe-address.ts'
import type { FeedbackContext } from '../context.ts'
import { setSubscribed } from './unsubscribe.ts'

/** The mailbox does not exist or will never accept mail. */
const UNREACHABLE = -10
const LONGEST_DETAIL = 500

export type EmailEventDetail = {
  /** What the other side reported, shown to the operator. */
  detail?: string | undefined
}

export async function handleEmailEvent(
  ctx: FeedbackContext,
  news: EmailFeedback,
  told: EmailEventDetail = {},
): Promise<void> {
  const { appId } = news.reference
  if (news.kind === 'unsubscribed') return void (await setSubscribed(ctx, news.reference, false, news.at))
  const noted = await ctx.emailFeedback.noteEmail(appId, news)
  if (!noted) return
  if (news.kind === 'bounced' && news.class === 'hard') await handleHardBounce(ctx, appId, noted, told)
  if (news.kind === 'complained') await handleComplaint(ctx, appId, noted)
}

/**
 * Handles a mailbox that does not exist. A bounce from a full or failing mailbox is only counted, and a block is a
 * statement about the sender, not about the recipient.
 */
async function handleHardBounce(
  { db, change, clock }: FeedbackContext,
  appId: AppId,
  { address, subscriptionId }: RecordedEmailFeedback,
  told: EmailEventDetail,
): Promise<void> {
  if (address === null) return
  await unsubscribeAddress(change, appId, subscriptionId, { token: address, notificationTypes: UNREACHABLE })
  const detail = plain(told.detail)
  await suppressAddresses(
    db,
    appId,
    [{ address: address.toLowerCase(), reason: 'hard_bounce', ...detail }],
    clock.now(),
  )
}

async function handleComplaint(
  { db, change, clock }: FeedbackContext,
  appId: AppId,
  { address, subscriptionId }: RecordedEmailFeedback,
): Promise<void> {
  const now = clock.now()
  await setSubscribedByUser(change, appId, subscriptionId, false)
  if (address !== null)
    await suppressAddresses(db, appId, [{ address: address.toLowerCase(), reason: 'complaint' }], now)
  const count = (from: Date) => sumOfApp(db, appId, coverWindow({ from, until: new Date(now.getTime() + 1) }))
  await pauseForComplaints(db, appId, count, now)
}

/** Removes control characters and shortens the detail so that it can be stored and displayed. */
const plain = (detail: string | undefined) =>
  detail === undefined
    ? {}
    : {
        detail: detail
          .toWellFormed()
          .replaceAll(/[\s\p{Cc}]+/gu, ' ')
          .slice(0, LONGEST_DETAIL),
      }

/**
 * Copies are sent under the reference of the email that they copy, and their feedback says nothing about that email.
 * Returns a function that tells whether one of the addresses belongs to a copy.
 */
export async function findCopies(
  { db }: FeedbackContext,
  reference: EmailReference,
): Promise<(addresses: readonly string[]) => boolean> {
  const delivery = await findEmailDelivery(db, reference)
  const message = delivery && (await findMessage(db, reference.appId, delivery.messageId))
  const copies = (message?.content.email_bcc ?? []).map((it) => it.toLowerCase())
  return (addresses) => addresses.some((it) => copies.includes(it.toLowerCase()))
}
