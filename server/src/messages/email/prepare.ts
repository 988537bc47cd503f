// Prepares emails before they are composed: the sender, suppressed addresses, the inbox provider, and the reference of
// each email.

import type { EmailAttachment } from '../../channels/email/message.ts'
import type { InboxProvider } from '../../email/inbox-providers/providers.ts'
import {
  type EmailReference,
  type EmailReferences,
  emailReferenceOf,
  type ReferencePurpose,
} from '../../email/reference.ts'
import { findSuppressed } from '../../email/suppressions/store.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import type { DueDelivery, SentMessage } from '../deliver/store.ts'
import type { DeliveryDetails, PreparedDelivery } from '../engine/channel.ts'
import type { MessageId } from '../message.ts'
import { UNSUBSCRIBED } from '../reasons.ts'
import type { EmailPort, ReferenceHeader } from './port.ts'
import { findSenderIdentity, type NoSenderIdentity, type SenderIdentity } from './sender-identity.ts'

export const SUPPRESSED = 'suppressed'

export type EmailMetadata = SenderIdentity & {
  id: string
  /** References are written on first use: few emails have a placeholder for each purpose. */
  referenceFor(purpose: ReferencePurpose): string
  referenceHeaders: readonly ReferenceHeader[]
  inboxProvider: InboxProvider
}

/** What composing an email needs to know about its delivery. */
export type EmailDetails = DeliveryDetails & { metadata: EmailMetadata; files?: readonly EmailAttachment[] | undefined }

export async function prepareEmails(
  { db, email }: { db: Db; email: EmailPort },
  appId: AppId,
  due: readonly DueDelivery[],
  messages: ReadonlyMap<MessageId, SentMessage>,
): Promise<PreparedDelivery<EmailDetails>[]> {
  const withAddress = due.filter(({ token }) => token !== null)
  if (withAddress.length === 0) return due.map(refuseWithoutAddress)
  const addresses = withAddress.map(({ token }) => (token as string).toLowerCase())
  const [suppressions, inboxProviders, identities, referenceHeaders] = await Promise.all([
    findSuppressed(db, appId, [...new Set(addresses)]),
    email.findInboxProviders(addresses),
    findSenderIdentities(email, appId, [...messages.values()]),
    email.referenceHeaders(appId),
  ])
  const recipients = new Map(
    withAddress.map((delivery, i) => [
      delivery,
      { suppression: suppressions.get(addresses[i] as string), inboxProvider: inboxProviders[i] as InboxProvider },
    ]),
  )
  return due.map((delivery): PreparedDelivery<EmailDetails> => {
    const message = messages.get(delivery.messageId)
    const identity = message && identities.get(message)
    const recipient = recipients.get(delivery)
    if (!message || identity === undefined || !recipient) return refuseWithoutAddress(delivery)
    const { suppression, inboxProvider } = recipient
    const isSuppressed =
      suppression !== undefined && !(suppression === 'unsubscribed' && message.options.includeUnsubscribed)
    if (isSuppressed) return { delivery, refusal: SUPPRESSED }
    if (typeof identity === 'string') return { delivery, refusal: identity }
    const { id, referenceFor } = referencesOf(email.references, emailReferenceOf({ ...delivery, appId }))
    const details: EmailDetails = {
      // Test messages are not counted.
      dimensions: message.options.isTest ? undefined : { sendingDomain: identity.domain.domain, inboxProvider },
      reference: id,
      unsubscribeToken: () => referenceFor('unsubscribe'),
      metadata: { ...identity, id, referenceFor, referenceHeaders, inboxProvider },
    }
    return { delivery, details }
  })
}

/** The engine skips deliveries without an address or message before it looks at the reason. */
const refuseWithoutAddress = (delivery: DueDelivery): PreparedDelivery<EmailDetails> => ({
  delivery,
  refusal: UNSUBSCRIBED,
})

function referencesOf(
  references: EmailReferences,
  reference: EmailReference,
): Pick<EmailMetadata, 'id' | 'referenceFor'> {
  const written = new Map<ReferencePurpose, string>()
  const referenceFor = (purpose: ReferencePurpose) => {
    const text = written.get(purpose) ?? references.write(reference, purpose)
    written.set(purpose, text)
    return text
  }
  return { id: reference.id, referenceFor }
}

/** Looks up each sender once, however many messages it has. */
async function findSenderIdentities(email: EmailPort, appId: AppId, messages: readonly SentMessage[]) {
  const asked = new Map<string, Promise<SenderIdentity | NoSenderIdentity>>()
  const found = new Map<SentMessage, SenderIdentity | NoSenderIdentity>()
  for (const message of messages) {
    const { email_from_name, email_from_address, email_sender_domain } = message.content
    const key = JSON.stringify([email_from_name, email_from_address, email_sender_domain])
    const identity = asked.get(key) ?? findSenderIdentity(email, appId, message.content)
    asked.set(key, identity)
    found.set(message, await identity)
  }
  return found
}
