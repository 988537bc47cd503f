// Inbound mail: delivery reports, complaints, and requests to unsubscribe by email. Only a signed reference identifies
// the delivery that a mail is about; without one, nothing is changed.

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

/** The mail as the channel parsed it. `clues` are the places in which the original message may name its reference. */
export type InboundEmail = { clues: string[] } & (
  | { kind: 'delivery'; recipients: RecipientReport[] }
  | { kind: 'complaint'; type: string }
  | { kind: 'other'; isAutoReply: boolean }
)

type ReportMailbox =
  | { kind: 'bounces' | 'unsubscribe'; reference: EmailReference }
  /** `fbl` receives mail from machines only; people also write to `abuse`. */
  | { kind: 'fbl' | 'abuse' }

/**
 * Returns undefined when there is no such mailbox. The host is ignored because the signature identifies the mailbox.
 */
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

/** An auto-reply is ignored because it does not express the recipient's wish. */
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
  // A server that sends a bounce report has stopped retrying, so a failure that looked transient counts as a soft
  // bounce.
  const kind = found === 'transient' ? 'soft' : found
  const reason = bounceReasonOf(kind)
  await handleEmailEvent(
    ctx,
    { reference, at: ctx.clock.now(), kind: 'bounced', class: kind, reason },
    { detail: text },
  )
}

async function handleComplaintReport(ctx: FeedbackContext, box: 'fbl' | 'abuse', report: InboundEmail): Promise<void> {
  // Some providers return the original mail without a complaint report.
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

/**
 * Returns the first validly signed reference. A returned mail names its own in its return path or unsubscribe address.
 */
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
