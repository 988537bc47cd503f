// Mail that comes back: reports of delivery, complaints, and people who unsubscribe by mail. Only a signed reference says whom
// it is about; without one nothing happens to anybody.

import type { EmailReference, References } from '../../email/reference.ts'
import type { FeedbackContext } from '../context.ts'
import { findCopies, follow } from './handle-email-event.ts'

export type ReportedRecipient = {
  addresses: string[]
  action: string
  code?: number
  enhanced?: string
  text?: string
}

/** As the channel reads it. `clues`: where the message that it is about may name its reference. */
export type MailReport = { clues: string[] } & (
  | { kind: 'delivery'; recipients: ReportedRecipient[] }
  | { kind: 'complaint'; type: string }
  | { kind: 'other'; isAutoReply: boolean }
)

type Mailbox =
  | { kind: 'bounces' | 'unsubscribe'; reference: EmailReference }
  /** `fbl` is for machines alone, `abuse` is also written to by people. */
  | { kind: 'fbl' | 'abuse' }

/** Undefined: there is no such mailbox. The host does not matter, the signature does. */
export function readMailbox(references: References, address: string): Mailbox | undefined {
  const local = address.slice(0, address.lastIndexOf('@')).toLowerCase()
  if (local === 'fbl' || local === 'abuse') return { kind: local }
  const [, letter, text = ''] = /^([bu])-([a-z2-7]+)$/.exec(local) ?? []
  const isBounce = letter === 'b'
  const reference = letter && references.read(text, isBounce ? 'report' : 'unsubscribe')
  return reference ? { kind: isBounce ? 'bounces' : 'unsubscribe', reference } : undefined
}

export async function takeMail(ctx: FeedbackContext, to: readonly string[], report: MailReport): Promise<void> {
  for (const address of new Set(to)) {
    const mailbox = readMailbox(ctx.mail.references, address)
    if (mailbox?.kind === 'unsubscribe') await takeRequest(ctx, mailbox.reference, report)
    else if (mailbox?.kind === 'bounces') await takeReport(ctx, mailbox.reference, report)
    else if (mailbox) await takeComplaints(ctx, mailbox.kind, report)
  }
}

/** Somebody's program answers for them: that is no wish. */
async function takeRequest(ctx: FeedbackContext, reference: EmailReference, report: MailReport): Promise<void> {
  if (report.kind === 'other' && !report.isAutoReply)
    await follow(ctx, { reference, at: ctx.clock.now(), kind: 'unsubscribed' })
}

async function takeReport(ctx: FeedbackContext, reference: EmailReference, report: MailReport): Promise<void> {
  if (report.kind === 'complaint') return takeComplaint(ctx, reference, report.type)
  if (report.kind !== 'delivery') return
  const failed = report.recipients.filter(({ action }) => action === 'failed')
  if (failed.length === 0) return
  const isCopy = await findCopies(ctx, reference)
  const recipient = failed.find(({ addresses }) => !isCopy(addresses))
  if (!recipient) return
  const { code, enhanced, text } = recipient
  const found = ctx.mail.classifyBounce({
    ...(code !== undefined && { code }),
    ...(enhanced !== undefined && { enhanced }),
    ...(text !== undefined && { text }),
  })
  // Whoever reports has given up: what looked transient is none any more.
  const kind = found === 'transient' ? 'soft' : found
  const reason = reasonOf(kind)
  await follow(ctx, { reference, at: ctx.clock.now(), kind: 'bounced', class: kind, reason }, { detail: text })
}

async function takeComplaints(ctx: FeedbackContext, box: 'fbl' | 'abuse', report: MailReport): Promise<void> {
  // Some providers return the mail that is complained about, and say nothing.
  const isComplaint = report.kind === 'complaint' || (box === 'fbl' && report.kind === 'other' && !report.isAutoReply)
  if (!isComplaint) return
  const reference = findReference(ctx.mail.references, report.clues)
  if (reference) await takeComplaint(ctx, reference, report.kind === 'complaint' ? report.type : 'abuse')
}

async function takeComplaint(ctx: FeedbackContext, reference: EmailReference, type: string): Promise<void> {
  const at = ctx.clock.now()
  if (type === 'opt-out' || type === 'opt-out-list') await follow(ctx, { reference, at, kind: 'unsubscribed' })
  else if (type === 'abuse' || type === 'fraud' || type === 'other')
    await follow(ctx, { reference, at, kind: 'complained' })
}

/** The first that is rightly signed; mail that is returned names itself by its return path or by how to unsubscribe from it. */
function findReference(references: References, clues: readonly string[]): EmailReference | undefined {
  for (const clue of clues)
    for (const [text] of clue.matchAll(/(?<![a-z2-7])[a-z2-7]{55}(?![a-z2-7])/gi)) {
      const reference = references.read(text, 'report', 'unsubscribe')
      if (reference) return reference
    }
  return undefined
}

const REASONS = { hard: 'hard_bounce', soft: 'soft_bounce', full: 'mailbox_full', block: 'blocked' } as const
export const reasonOf = (kind: keyof typeof REASONS) => REASONS[kind]
