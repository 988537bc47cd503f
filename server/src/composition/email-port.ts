// What the delivery engine needs from the email domain.

import { findApp } from '../apps/store.ts'
import type { AttachmentFetcher } from '../channels/email/fetch-attachments.ts'
import type { EmailContext } from '../email/context.ts'
import { findDefaultFrom, findSendingDomain } from '../email/domains/find-sending-domain.ts'
import { classifyAddresses, lookUpHosts } from '../email/inbox-providers/hosts.ts'
import type { ProviderList } from '../email/inbox-providers/providers.ts'
import { createReferences } from '../email/reference.ts'
import { findReferenceHeaders } from '../feedback/email/sources/reference-headers.ts'
import type { Clock } from '../lib/clock.ts'
import type { EmailPort } from '../messages/email/port.ts'
import type { MailChannels } from './email-channels.ts'

type Parts = {
  email: EmailContext
  clock: Clock
  secretKey: string
  mails: Pick<MailChannels, 'open'>
  files: AttachmentFetcher
  /** The operator's own inbox providers, which take precedence over the built-in ones. */
  inboxProviders?: ProviderList | undefined
}

export const createEmailPort = ({
  email,
  clock,
  secretKey,
  mails,
  files,
  inboxProviders: providers,
}: Parts): EmailPort => ({
  references: createReferences(secretKey),
  findSendingDomain: (appId, domain) => findSendingDomain(email, appId, domain),
  defaultFrom: (appId) => findDefaultFrom(email, appId),
  async findDevelopmentMailbox(appId) {
    if (!(await mails.open(appId)).isCaught) return undefined
    return { appName: (await findApp(email.db, appId))?.name ?? '' }
  },
  referenceHeaders: (appId) => findReferenceHeaders(email.db, appId),
  findInboxProviders: (addresses) => classifyAddresses(email.db, addresses, providers),
  lookUpMailHosts: (domains) => lookUpHosts({ ...email, clock, providers }, domains),
  fetchAttachments: files.fetch,
})
