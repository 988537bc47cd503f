// Opens and clicks, as mail programs and browsers bring them.

import { AppError } from '../../lib/errors.ts'
import { findEmailDelivery } from '../../messages/email/store.ts'
import type { FeedbackContext } from '../context.ts'
import { isMachineAgent } from './tracking-guard.ts'

type Context = Pick<FeedbackContext, 'db' | 'clock' | 'mail'>

/** What is not a reference of ours costs no look into the database. */
export async function takeOpen({ clock, mail }: Context, text: string, agent: string | undefined): Promise<void> {
  const reference = mail.references.read(text, 'open')
  if (!reference || !mail.watch.mayCount(reference.id)) return
  const news = { reference, at: clock.now(), kind: 'opened' as const, isMachine: isMachineAgent(agent) }
  await unlessAway(mail.noteEmail(reference.appId, news))
}

export type Click = { reference: string; signature: string; url: string; agent: string | undefined }

/** Where the link leads; undefined when we never wrote this link. */
export function readLink({ mail }: Context, { reference, signature, url }: Click): string | undefined {
  const named = mail.references.read(reference, 'click')
  if (!named || !mail.references.isSigned(named.appId, url, signature)) return undefined
  // Signed or not, nothing else than a web address leaves here, and none that could say more than itself in a header.
  if (!/^https?:\/\/[^\s\p{Cc}\\]+$/iu.test(url)) return undefined
  return URL.parse(url)?.href
}

/** The link has been checked. */
export async function takeClick({ db, clock, mail }: Context, { reference: text, url, agent }: Click): Promise<void> {
  const reference = mail.references.read(text, 'click')
  if (!reference || !mail.watch.mayCount(reference.id)) return
  await unlessAway(
    (async () => {
      const delivery = await findEmailDelivery(db, reference)
      if (!delivery) return
      const isMachine = mail.watch.isHasty(reference.id, url, delivery.deliveredAt) || isMachineAgent(agent)
      await mail.noteEmail(reference.appId, { reference, at: clock.now(), kind: 'clicked', isMachine })
    })(),
  )
}

/** Whoever opens a mail or follows a link gets there also while the database is away. */
async function unlessAway(work: Promise<unknown>): Promise<void> {
  try {
    await work
  } catch (error) {
    if (!(error instanceof AppError && error.kind === 'unavailable')) throw error
  }
}
