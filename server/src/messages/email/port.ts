// What sending mail asks of the world; the composition answers.

import type { ChannelOutcome } from '../../channels/channel.ts'
import type { AttachmentSource, EmailAttachment } from '../../channels/email/message.ts'
import type { SendingDomain } from '../../email/domains/find-sending-domain.ts'
import type { InboxProvider } from '../../email/inbox-providers/providers.ts'
import type { EmailReferences } from '../../email/reference.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Pieces } from '../../lib/placeholders.ts'
import type { MessageId } from '../message.ts'

/** As the content of a mail has it. */
export type ReferenceHeader = readonly [name: string, pieces: Pieces]

export type EmailPort = {
  references: EmailReferences
  /** Undefined for a domain that the app may not send from. */
  findSendingDomain(appId: AppId, domain: string): Promise<SendingDomain | undefined>
  defaultFrom(appId: AppId): Promise<{ name?: string; address: string } | undefined>
  /** Of an app whose mail is caught, not sent; undefined for others. */
  findDevelopmentMailbox(appId: AppId): Promise<{ appName: string } | undefined>
  /** What the providers that tell of the app's mail take the reference of each from, to bring it back. */
  referenceHeaders(appId: AppId): Promise<ReferenceHeader[]>
  /** Where each mailbox is, by its name and what was looked up before; asks nobody. */
  findInboxProviders(addresses: readonly string[]): Promise<InboxProvider[]>
  /** Where the mailboxes of these domains are, so that it is known when mail is sent to them. */
  lookUpMailHosts(domains: readonly string[]): Promise<void>
  /** What hangs on to the mails of a message, in the order in which it was asked for; or why it does not. */
  fetchAttachments(
    appId: AppId,
    messageId: MessageId,
    asked: readonly AttachmentSource[],
  ): Promise<readonly EmailAttachment[] | Extract<ChannelOutcome, { kind: 'retry' | 'failed' }>>
}
