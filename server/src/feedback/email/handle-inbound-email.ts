// Mail that comes back: reports of delivery, complaints, and people who unsubscribe by mail. Only a signed reference says whom
// it is about; without one nothing happens to anybody.

import type { EmailReference, EmailReferences } from '../../email/reference.ts'
import type { FeedbackContext } from '../context.ts'
import { findCopies, handleEmailEvent } from './handle-email-event.ts'

export type RecipientReport = {
  addresses: string[]
  action: string
  code?: number
  enhanced?: string
  text?: string
}

/** As the channel reads it. `clues`: where the message that it is about may name its reference. */
export type InboundEmail = { clues: string[] } & (
  | { kind: 'delivery'; recipients: RecipientReport[] }
  | { kind: 'complaint'; type: string }
  | { kind: 'other'; isAutoReply: boolean }
)

type ReportMailbox =
  | { kind: 'bounces' | 'unsubscribe'; reference: EmailReference }
  /** `fbl` is for machines alone, `abuse` is also written to by people. */
  | { kind: 'fbl' | 'abuse' }

/** Undefined: there is no such mailbox. The host does not matter, the signature does. */
export function readMailbox(references: EmailReferences, address: string): ReportMailbox | undefined {
  const local = address.slice(0, address.lastIndexOf('@')).toLowerCase()
  if (local === 'fbl' || local === 'abuse') return { kind: local }
  const [, letter, text = ''] = /^([bu])-([a-z2-7]+)$/.exec(local) ?? []
  const isBounce = letter === 'b'
  const reference = letter && references.read(text, isBounce ? 'report' : 'unsubscribe')
  return reference ? { kind: isBounce ? 'bounces' : 'unsubscribe', reference } : undefined
}

export async function handleInboundEmail(
  ctx: FeedbackContext,
  to: readonly string[],
  report: InboundEmail,
): Promise<void> {
  for (const address of new Set(to)) {
    const mailbox = readMailbox(ctx.emailFeedback.references, address)
    if (mailbox?.kind === 'unsubscribe') await handleUnsubscribeRequest(ctx, mailbox.reference, report)
    else if (mailbox?.kind === 'bounces') await handleDeliveryReport(ctx, mailbox.reference, report)
    else if (mailbox) await handleComplaintReport(ctx, mailbox.kind, report)
  }
}

/** Somebody's program answers for them: that is no wish. */
async function handleUnsubscribeRequest(
  ctx: FeedbackContext,
  reference: EmailReference,
  report: InboundEmail,
): Promise<void> {
  if (report.kind === 'other' && !report.isAutoReply)
    await handleEmailEvent(ctx, { reference, at: ctx.clock.now(), kind: 'unsubscribed' })
}

async function handleDeliveryReport(
  ctx: FeedbackContext,
  reference: EmailReference,
  report: InboundEmail,
): Promise<void> {
  if (report.kind === 'complaint') return handleComplaint(ctx, reference, report.type)
  if (report.kind !== 'delivery') return
  const failed = report.recipients.filter(({ action }) => action === 'failed')
  if (failed.length === 0) return
  const isCopy = await findCopies(ctx, reference)
  const recipient = failed.find(({ addresses }) => !isCopy(addresses))
  if (!recipient) return
  const { code, enhanced, text } = recipient
  const found = ctx.emailFeedback.classifyBounce({
    ...(code !== undefined && { code }),
    ...(enhanced !== undefined && { enhanced }),
    ...(text !== undefined && { text }),
  })
  // Whoever reports has given up: what looked transient is none any more.
  const kind = found === 'transient' ? 'soft' : found
  const reason = bounceReasonOf(kind)
  await handleEmailEvent(
    ctx,
    { reference, at: ctx.clock.now(), kind: 'bounced', class: kind, reason },
    { detail: text },
  )
}

async function handleComplaintReport(ctx: FeedbackContext, box: 'fbl' | 'abuse', report: InboundEmail): Promise<void> {
  // Some providers return the mail that is complained about, and say nothing.
  const isComplaint = report.kind === 'complaint' || (box === 'fbl' && report.kind === 'other' && !report.isAutoReply)
  if (!isComplaint) return
  const reference = findReference(ctx.emailFeedback.references, report.clues)
  if (reference) await handleComplaint(ctx, reference, report.kind === 'complaint' ? report.type : 'abuse')
}

async function handleComplaint(ctx: FeedbackContext, reference: EmailReference, type: string): Promise<void> {
  const at = ctx.clock.now()
  if (type === 'opt-out' || type === 'opt-out-list')
    await handleEmailEvent(ctx, { reference, at, kind: 'unsubscribed' })
  else if (type === 'abuse' || type === 'fraud' || type === 'other')
    await handleEmailEvent(ctx, { reference, at, kind: 'complained' })
}

/** The first that is rightly signed; mail that is returned names itself by its return path or by how to unsubscribe from it. */
function findReference(references: EmailReferences, clues: readonly string[]): EmailReference | undefined {
  for (const clue of clues)
    for (const [text] of clue.matchAll(/(?<![a-z2-7])[a-z2-7]{55}(?![a-z2-7])/gi)) {
      const reference = references.read(text, 'report', 'unsubscribe')
      if (reference) return reference
    }
  return undefined
}

const REASONS = { hard: 'hard_bounce', soft: 'soft_bounce', full: 'mailbox_full', block: 'blocked' } as const
export const bounceReasonOf = (kind: keyof typeof REASONS) => REASONS[kind]
