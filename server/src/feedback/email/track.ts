// Records opens and clicks that arrive from mail programs and browsers.

import { AppError } from '../../lib/errors.ts'
import { findEmailDelivery } from '../../messages/email/store.ts'
import type { FeedbackContext } from '../context.ts'
import { isMachineAgent } from './tracking-guard.ts'

type TrackingContext = Pick<FeedbackContext, 'db' | 'clock' | 'emailFeedback'>

/** Text that is not one of our references causes no database query. */
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

/** Returns the link's target, or undefined when the server never wrote this link. */
export function readLink(
  { emailFeedback: email }: TrackingContext,
  { reference, signature, url }: EmailClick,
): string | undefined {
  const named = email.references.read(reference, 'click')
  if (!named || !email.references.isSigned(named.appId, url, signature)) return undefined
  // Even a signed link redirects only to a web address, and to none that could break out of the `Location` header.
  if (!/^https?:\/\/[^\s\p{Cc}\\]+$/iu.test(url)) return undefined
  return URL.parse(url)?.href
}

/** The caller has verified the link with `readLink`. */
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

/** Images and links keep working while the database is unavailable; the open or click is then not recorded. */
async function ignoreOutage(work: Promise<unknown>): Promise<void> {
  try {
    await work
  } catch (error) {
    if (!(error instanceof AppError && error.kind === 'unavailable')) throw error
  }
}
