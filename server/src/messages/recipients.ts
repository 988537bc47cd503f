// Messages that take recipients while they are open: journeys add each user to the message of the node that the user is
// at (expand/add-recipients.ts). They are unlisted, and otherwise sent like any other message.

import type { AppId, NewId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import type { TemplateId } from '../templates/template.ts'
import { readMessageContent } from './accept/read-content.ts'
import { readOptions } from './accept/read-options.ts'
import { insertOpenMessage } from './accept/store.ts'
import type { MessagesContext } from './context.ts'
import type { JobLane, MessageId, NewMessage } from './message.ts'
import type { CreateMessageBody } from './schema.ts'

/** The parts of a message that its template decides. */
export type PreparedMessage = Pick<NewMessage, 'channel' | 'templateId' | 'content' | 'emailHtml' | 'options'>

/**
 * Prepares what a request with this template and nothing else would send; undefined if there is no such template. Must
 * not run in a transaction, because another process may have to prepare the content.
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
  const content = await readMessageContent(renderer, appId, body, undefined, template)
  return { ...content, templateId, options: readOptions(body, content, template, now) }
}

/** Nobody can be added after `until`. */
export type OpenMessageInput = { name: string | null; lane: JobLane; until: Date }

/**
 * All deliveries belong to the month in which the message was opened; its partition must still be there for the last
 * one.
 */
const MAX_OPEN_MS = 2 * 86_400_000

/** Runs in the caller's transaction. */
export async function openMessage(
  { newId }: { newId: NewId },
  db: Db,
  appId: AppId,
  prepared: PreparedMessage,
  { name, lane, until }: OpenMessageInput,
  now: Date,
): Promise<MessageId> {
  if (until.getTime() - now.getTime() > MAX_OPEN_MS) throw new Error('A message can be open for at most two days.')
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
