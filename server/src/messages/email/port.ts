// What sending email needs from other domains. The composition implements it.

import type { ChannelOutcome } from '../../channels/channel.ts'
import type { AttachmentSource, EmailAttachment } from '../../channels/email/message.ts'
import type { SendingDomain } from '../../email/domains/find-sending-domain.ts'
import type { InboxProvider } from '../../email/inbox-providers/providers.ts'
import type { EmailReferences } from '../../email/reference.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Pieces } from '../../lib/placeholders.ts'
import type { MessageId } from '../message.ts'

/** A header whose value contains a placeholder for the reference. */
export type ReferenceHeader = readonly [name: string, pieces: Pieces]

export type EmailPort = {
  references: EmailReferences
  /** Returns undefined for a domain that the app may not send from. */
  findSendingDomain(appId: AppId, domain: string): Promise<SendingDomain | undefined>
  defaultFrom(appId: AppId): Promise<{ name?: string; address: string } | undefined>
  /** For an app whose email is caught instead of sent; undefined for others. */
  findDevelopmentMailbox(appId: AppId): Promise<{ appName: string } | undefined>
  /** The headers in which a provider that reports on the app's emails returns the reference of each. */
  referenceHeaders(appId: AppId): Promise<ReferenceHeader[]>
  /**
   * Returns which provider hosts each mailbox, from the domain's name and from earlier lookups; makes no network
   * request.
   */
  findInboxProviders(addresses: readonly string[]): Promise<InboxProvider[]>
  /** Looks up who hosts the mailboxes of these domains, so that it is known when email is sent to them. */
  lookUpMailHosts(domains: readonly string[]): Promise<void>
  /**
   * Returns the attachments of a message in the order in which they were requested, or the reason why they cannot be
   * attached.
   */
  fetchAttachments(
    appId: AppId,
    messageId: MessageId,
    asked: readonly AttachmentSource[],
  ): Promise<readonly EmailAttachment[] | Extract<ChannelOutcome, { kind: 'retry' | 'failed' }>>
}
