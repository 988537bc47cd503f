// Fetches the attachments of emails before they are composed. A file that cannot be fetched delays only its own
// message.

import type { ChannelOutcome } from '../../channels/channel.ts'
import type { AttachmentSource, EmailAttachment } from '../../channels/email/message.ts'
import type { AppId } from '../../lib/ids.ts'
import type { ContentAttachment } from '../../templates/content.ts'
import type { SentMessage } from '../deliver/store.ts'
import type { ReadyDelivery } from '../engine/channel.ts'
import type { EmailPort } from './port.ts'
import type { EmailDetails } from './prepare.ts'

/** The file could not be fetched, either permanently or so far. */
export const ATTACHMENT_FAILED = 'attachment_failed'
/** The file is still being fetched. */
export const ATTACHMENT_PENDING = 'attachment_awaited'

type Attached = {
  complete: readonly ReadyDelivery<EmailDetails>[]
  failed: { delivery: ReadyDelivery<EmailDetails>; outcome: ChannelOutcome }[]
}

export async function attachFiles(
  email: EmailPort,
  appId: AppId,
  deliveries: readonly ReadyDelivery<EmailDetails>[],
): Promise<Attached> {
  const messages = new Set(deliveries.map(({ message }) => message).filter(hasFiles))
  if (messages.size === 0) return { complete: deliveries, failed: [] }
  const fetched = new Map(
    await Promise.all([...messages].map(async (message) => [message, await fetchFor(email, appId, message)] as const)),
  )
  const complete: ReadyDelivery<EmailDetails>[] = []
  const failed: Attached['failed'] = []
  for (const delivery of deliveries) {
    const files = fetched.get(delivery.message)
    if (files === undefined) complete.push(delivery)
    else if ('kind' in files) failed.push({ delivery, outcome: attachmentOutcome(files) })
    else complete.push({ ...delivery, details: { ...delivery.details, files } })
  }
  return { complete, failed }
}

const hasFiles = ({ content }: SentMessage) => (content.email_attachments?.length ?? 0) > 0

const fetchFor = (email: EmailPort, appId: AppId, { id, content }: SentMessage) =>
  email.fetchAttachments(appId, id, (content.email_attachments ?? []).map(fileAsked))

const fileAsked = ({ url, filename, content_type }: ContentAttachment): AttachmentSource => ({
  url,
  name: filename || nameIn(url),
  contentType: content_type || undefined,
})

/** The last part of the URL's path, decoded to readable text. */
function nameIn(url: string): string {
  const last = URL.parse(url)?.pathname.split('/').at(-1) ?? ''
  try {
    return decodeURIComponent(last)
  } catch {
    return last
  }
}

type Failure = Exclude<Awaited<ReturnType<EmailPort['fetchAttachments']>>, readonly EmailAttachment[]>

const attachmentOutcome = (failure: Failure): ChannelOutcome => ({
  ...failure,
  reason: failure.kind === 'retry' && failure.wasNotAttempted ? ATTACHMENT_PENDING : ATTACHMENT_FAILED,
})
