// Messages that take their recipients one by one while they are open: whoever leads users through steps adds each to the message of
// the step that they are at (engine/add-recipients.ts). They stand in no list, and go the way of all others from there on.

import type { AppId, NewId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import type { TemplateId } from '../templates/template.ts'
import { readMessageContent } from './accept/read-content.ts'
import { readOptions } from './accept/read-options.ts'
import type { Targeting } from './accept/read-targeting.ts'
import type { MessagesContext } from './context.ts'
import type { JobLane, MessageId, NewMessage } from './message.ts'
import type { CreateMessageBody } from './schema.ts'
import { insertOpenMessage } from './store.ts'

/** All that a template decides. */
export type PreparedMessage = Pick<NewMessage, 'channel' | 'templateId' | 'content' | 'emailHtml' | 'options'>

/** Nobody is named by the request that it would be. */
const NOBODY: Targeting = { kind: 'segments', included: [], excluded: [] }

/**
 * What a request would send that gave the template and nothing else. Undefined when there is no such template (any more). Not in a
 * transaction: content may have to be prepared by another process.
 */
export async function prepareFromTemplate(
  { findTemplate, renderer }: Pick<MessagesContext, 'findTemplate' | 'renderer'>,
  appId: AppId,
  templateId: TemplateId,
  now: Date,
): Promise<PreparedMessage | undefined> {
  const template = await findTemplate(appId, templateId)
  if (!template) return undefined
  const body = { app_id: appId, template_id: templateId } as CreateMessageBody
  const { channel, content, emailHtml } = await readMessageContent(renderer, appId, body, NOBODY, template)
  const { name, dynamicContent } = template
  const options = { ...readOptions(body, channel, content, now), template: { name, dynamicContent } }
  return { channel, templateId, content, emailHtml, options }
}

/** `until`: nobody is added after it, a day or two from now at most. */
export type OpenMessageInput = { name: string | null; lane: JobLane; until: Date }

/** Longer, and the month in which it began could be over and gone before the last one is added. */
const LONGEST_OPEN_MS = 2 * 86_400_000

/** In the caller's transaction. */
export async function openMessage(
  { newId }: { newId: NewId },
  db: Db,
  appId: AppId,
  prepared: PreparedMessage,
  { name, lane, until }: OpenMessageInput,
  now: Date,
): Promise<MessageId> {
  if (until.getTime() - now.getTime() > LONGEST_OPEN_MS) throw new Error('a message cannot be open for so long')
  const message: NewMessage = {
    ...prepared,
    id: newId(),
    kind: 3,
    isListed: false,
    lane,
    name,
    audience: { kind: 'recipients', until: until.toISOString() },
    sendAfter: now,
  }
  await insertOpenMessage(db, appId, message, now)
  return message.id
}
