// Opens and clicks, as mail programs and browsers bring them.

import { AppError } from '../../lib/errors.ts'
import { findEmailDelivery } from '../../messages/email/store.ts'
import type { FeedbackContext } from '../context.ts'
import { isMachineAgent } from './tracking-guard.ts'

type TrackingContext = Pick<FeedbackContext, 'db' | 'clock' | 'emailFeedback'>

/** What is not a reference of ours costs no look into the database. */
export async function recordOpen(
  { clock, emailFeedback: email }: TrackingContext,
  text: string,
  agent: string | undefined,
): Promise<void> {
  const reference = email.references.read(text, 'open')
  if (!reference || !email.trackingGuard.mayCount(reference.id)) return
  const news = { reference, at: clock.now(), kind: 'opened' as const, isMachine: isMachineAgent(agent) }
  await ignoreOutage(email.noteEmail(reference.appId, news))
}

export type EmailClick = { reference: string; signature: string; url: string; agent: string | undefined }

/** Where the link leads; undefined when we never wrote this link. */
export function readLink(
  { emailFeedback: email }: TrackingContext,
  { reference, signature, url }: EmailClick,
): string | undefined {
  const named = email.references.read(reference, 'click')
  if (!named || !email.references.isSigned(named.appId, url, signature)) return undefined
  // Signed or not, nothing else than a web address leaves here, and none that could say more than itself in a header.
  if (!/^https?:\/\/[^\s\p{Cc}\\]+$/iu.test(url)) return undefined
  return URL.parse(url)?.href
}

/** The link has been checked. */
export async function recordClick(
  { db, clock, emailFeedback: email }: TrackingContext,
  { reference: text, url, agent }: EmailClick,
): Promise<void> {
  const reference = email.references.read(text, 'click')
  if (!reference || !email.trackingGuard.mayCount(reference.id)) return
  await ignoreOutage(
    (async () => {
      const delivery = await findEmailDelivery(db, reference)
      if (!delivery) return
      const isMachine = email.trackingGuard.isTooFast(reference.id, url, delivery.deliveredAt) || isMachineAgent(agent)
      await email.noteEmail(reference.appId, { reference, at: clock.now(), kind: 'clicked', isMachine })
    })(),
  )
}

/** Whoever opens a mail or follows a link gets there also while the database is away. */
async function ignoreOutage(work: Promise<unknown>): Promise<void> {
  try {
    await work
  } catch (error) {
    if (!(error instanceof AppError && error.kind === 'unavailable')) throw error
  }
}
