// Before mail is put together: the files that hang on to it. A file that cannot be had holds up its own message alone.

import type { ChannelOutcome } from '../../channels/channel.ts'
import type { AttachmentSource, EmailAttachment } from '../../channels/email/message.ts'
import type { AppId } from '../../lib/ids.ts'
import type { ContentAttachment } from '../../templates/content.ts'
import { dimensionsOf } from '../deliver/batch.ts'
import type { ReadyDelivery } from '../deliver/compose.ts'
import type { Decision } from '../deliver/decide.ts'
import { judgeOutcome } from '../deliver/judge-outcome.ts'
import type { SentMessage } from '../deliver/store.ts'
import type { Engine } from '../engine/engine.ts'
import type { EmailPort } from './port.ts'

/** It could not be fetched, for good or so far. */
export const ATTACHMENT_FAILED = 'attachment_failed'
/** It is being fetched. */
export const ATTACHMENT_PENDING = 'attachment_awaited'

type AttachResult = { ready: readonly ReadyDelivery[]; withoutFiles: Decision[] }

/** `unattached`: those that are not sent now, or not at all. */
export async function attachFiles(
  { email, clock, random }: Pick<Engine, 'email' | 'clock' | 'random'>,
  appId: AppId,
  list: readonly ReadyDelivery[],
): Promise<AttachResult> {
  const messages = new Set(list.filter(hasFiles).map(({ message }) => message))
  if (messages.size === 0) return { ready: list, withoutFiles: [] }
  const fetched = new Map(
    await Promise.all([...messages].map(async (message) => [message, await fetchFor(email, appId, message)] as const)),
  )
  const now = clock.now()
  const ready: ReadyDelivery[] = []
  const unattached: Decision[] = []
  for (const it of list) {
    const files = fetched.get(it.message)
    if (files === undefined || !('kind' in files)) ready.push(files ? { ...it, files } : it)
    else
      unattached.push({
        due: it.due,
        change: {
          ...judgeOutcome(it.due, inOurWords(files), { now, random, atLeastOnce: false }),
          ...dimensionsOf(it),
        },
      })
  }
  return { ready, withoutFiles: unattached }
}

const hasFiles = ({ mailing, message }: ReadyDelivery) =>
  mailing !== undefined && (message.content.email_attachments?.length ?? 0) > 0

const fetchFor = (email: EmailPort, appId: AppId, { id, content }: SentMessage) =>
  email.fetchAttachments(appId, id, (content.email_attachments ?? []).map(fileAsked))

const fileAsked = ({ url, filename, content_type }: ContentAttachment): AttachmentSource => ({
  url,
  name: filename || nameIn(url),
  contentType: content_type || undefined,
})

/** The last part of its path, as a person would read it. */
function nameIn(url: string): string {
  const last = URL.parse(url)?.pathname.split('/').at(-1) ?? ''
  try {
    return decodeURIComponent(last)
  } catch {
    return last
  }
}

type Failure = Exclude<Awaited<ReturnType<EmailPort['fetchAttachments']>>, readonly EmailAttachment[]>

const inOurWords = (failure: Failure): ChannelOutcome => ({
  ...failure,
  reason: failure.kind === 'retry' && failure.wasNotAttempted ? ATTACHMENT_PENDING : ATTACHMENT_FAILED,
})
