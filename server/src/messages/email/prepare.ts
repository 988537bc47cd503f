// Before mail is put together: whom each message is from, who must not get it, where each mailbox is, and what each mail is known by.

import type { InboxProvider } from '../../email/inbox-providers/providers.ts'
import {
  type EmailReference,
  type EmailReferences,
  emailReferenceOf,
  type ReferencePurpose,
} from '../../email/reference.ts'
import { findSuppressed } from '../../email/suppressions/store.ts'
import type { AppId } from '../../lib/ids.ts'
import type { DueDelivery, SentMessage } from '../deliver/store.ts'
import type { Engine } from '../engine/engine.ts'
import type { MessageId } from '../message.ts'
import type { ReferenceHeader } from './port.ts'
import { findSenderIdentity, type NoSenderIdentity, type SenderIdentity } from './sender-identity.ts'

export const SUPPRESSED = 'suppressed'

export type EmailMetadata = SenderIdentity & {
  id: string
  /** Written when it is first asked for: few mails have a place for each purpose. */
  referenceFor(purpose: ReferencePurpose): string
  referenceHeaders: readonly ReferenceHeader[]
  inboxProvider: InboxProvider
}

/** `refusal`: why it is not sent at all. */
export type PreparedEmail = { envelope?: EmailMetadata; refusal?: string }

/** Of deliveries that are not by mail, or whose message or address is gone, nothing is said. */
export async function prepareEmails(
  { db, email }: Pick<Engine, 'db' | 'email'>,
  appId: AppId,
  due: readonly DueDelivery[],
  messages: ReadonlyMap<MessageId, SentMessage>,
): Promise<(it: DueDelivery) => PreparedEmail | undefined> {
  const mails = due.filter(({ platform, token }) => platform === 'Email' && token !== null)
  if (mails.length === 0) return () => undefined
  const addresses = mails.map(({ token }) => (token as string).toLowerCase())
  const [suppressed, inboxProviders, letterheads, referenceHeaders] = await Promise.all([
    findSuppressed(db, appId, [...new Set(addresses)]),
    email.findInboxProviders(addresses),
    findLetterheads(email, appId, [...messages.values()]),
    email.referenceHeaders(appId),
  ])
  const prepared = new Map<DueDelivery, PreparedEmail>()
  for (const [i, it] of mails.entries()) {
    const message = messages.get(it.messageId)
    const letterhead = message && letterheads.get(message)
    if (!message || letterhead === undefined) continue
    const why = suppressed.get(addresses[i] as string)
    const isRefused = why !== undefined && !(why === 'unsubscribed' && message.options.includeUnsubscribed)
    if (isRefused) prepared.set(it, { refusal: SUPPRESSED })
    else if (typeof letterhead === 'string') prepared.set(it, { refusal: letterhead })
    else
      prepared.set(it, {
        envelope: {
          ...letterhead,
          ...nameMail(email.references, emailReferenceOf({ ...it, appId })),
          referenceHeaders,
          inboxProvider: inboxProviders[i] as InboxProvider,
        },
      })
  }
  return (it) => prepared.get(it)
}

function nameMail(references: EmailReferences, reference: EmailReference): Pick<EmailMetadata, 'id' | 'referenceFor'> {
  const written = new Map<ReferencePurpose, string>()
  const referenceFor = (purpose: ReferencePurpose) => {
    const text = written.get(purpose) ?? references.write(reference, purpose)
    written.set(purpose, text)
    return text
  }
  return { id: reference.id, referenceFor }
}

/** Messages that are from the same are asked for once. */
async function findLetterheads(email: Engine['email'], appId: AppId, messages: readonly SentMessage[]) {
  const asked = new Map<string, Promise<SenderIdentity | NoSenderIdentity>>()
  const found = new Map<SentMessage, SenderIdentity | NoSenderIdentity>()
  for (const message of messages) {
    const { email_from_name, email_from_address, email_sender_domain } = message.content
    const key = JSON.stringify([email_from_name, email_from_address, email_sender_domain])
    const letterhead = asked.get(key) ?? findSenderIdentity(email, appId, message.content)
    asked.set(key, letterhead)
    found.set(message, await letterhead)
  }
  return found
}
