// Create message: read the request, resolve what it names, and have it accepted.

import { invalid } from '../../lib/errors.ts'
import { type AppId, isUuid } from '../../lib/ids.ts'
import { sendingDisabled } from '../../sending/hold.ts'
import { checkMayAttach } from '../../templates/check-content.ts'
import { usesLiquid } from '../../templates/prepare-content.ts'
import { refuseSuspended } from '../../templates/suspension.ts'
import type { Template } from '../../templates/template.ts'
import type { MessagesContext } from '../context.ts'
import type { MessageOptions, NewMessage } from '../message.ts'
import type { CreatedAnswer, CreateMessageBody } from '../schema.ts'
import { findTakenKeys } from '../store.ts'
import { oldestKeyTime, type RequestKeys, readKeys } from './idempotency.ts'
import { type AcceptedMessage, replayOf } from './insert-messages.ts'
import { subscriptionTypesFor } from './platforms.ts'
import { readMessageContent } from './read-content.ts'
import { readOptions, readSendAfter } from './read-options.ts'
import { readTargeting, type Targeting } from './read-targeting.ts'
import { resolveAudience, targetsOf, unsubscribedErrors } from './resolve-audience.ts'

/** More than these are not written one by one. */
export const MAX_DIRECT_TARGETS = 100

export type SendResult = { answer: CreatedAnswer; isReplay: boolean }

/** Awaits only what is a promise: most requests wait for nothing but being stored. */
export async function sendMessage(ctx: MessagesContext, appId: AppId, body: CreateMessageBody): Promise<SendResult> {
  const keys = readKeys(body)
  const targeting = readTargeting(body)
  const sendAfter = readSendAfter(body, ctx.now())
  const replay = keys.keys.length > 0 && namesThings(body, targeting) ? await findReplay(ctx, appId, keys) : undefined
  const accepted = replay ?? (await acceptDraft(ctx, appId, body, targeting, keys, sendAfter))
  return { answer: answerOf(targeting, keys, accepted), isReplay: accepted?.isReplay === true }
}

/**
 * The first answer does not change with what it was made from: it is looked for before templates, segments and addresses
 * are. Where nothing of that kind is named, taking the key finds it.
 */
const namesThings = ({ template_id }: CreateMessageBody, { kind }: Targeting) =>
  template_id || kind === 'segments' || kind === 'filters' || kind === 'tokens'

async function findReplay(
  { db, now }: MessagesContext,
  appId: AppId,
  keys: RequestKeys,
): Promise<AcceptedMessage | undefined> {
  const replay = replayOf(keys, await findTakenKeys(db, appId, keys.keys, oldestKeyTime(now())))
  if (replay && 'error' in replay) throw replay.error
  return replay?.value
}

async function acceptDraft(
  ctx: MessagesContext,
  appId: AppId,
  body: CreateMessageBody,
  targeting: Targeting,
  keys: RequestKeys,
  sendAfter: Date,
): Promise<(AcceptedMessage & { warnings?: string[] }) | undefined> {
  const template = body.template_id ? await getTemplate(ctx, appId, body.template_id) : undefined
  const read = readMessageContent(ctx.renderer, appId, body, targeting, template)
  const { channel, content, emailHtml } = read instanceof Promise ? await read : read
  checkMayAttach(content, ctx.allowsAttachments)
  if (usesLiquid(content)) {
    const dynamicContent = template?.dynamicContent ?? null
    await refuseSuspended(ctx.findSuspension, appId, { content, emailHtml, dynamicContent })
  }
  const options: MessageOptions = readOptions(body, channel, content, ctx.now())
  if (template) options.template = { name: template.name, dynamicContent: template.dynamicContent }
  // Before anybody is made a subscription for a message that is then refused.
  if (targeting.kind === 'tokens' && (await ctx.isSendingDisabled(appId))) throw sendingDisabled()
  const found = resolveAudience(ctx, appId, targeting)
  const audience = found instanceof Promise ? await found : found
  const targets = targetsOf(audience)
  const message: NewMessage = {
    id: ctx.newId(),
    channel,
    kind: 1,
    isListed: true,
    lane: targets !== undefined && targets.length <= MAX_DIRECT_TARGETS ? 'direct' : 'bulk',
    name: body.name ?? null,
    templateId: template?.id ?? null,
    audience,
    content,
    emailHtml,
    options,
    sendAfter,
  }
  const waiting = { message, types: subscriptionTypesFor(channel, options.platforms), targets, ...keys }
  const accepted = await ctx.insertMessage(appId, waiting)
  // With a key a retry gets the first answer, whatever was set up in between: so that answer says nothing of it.
  if (!accepted || keys.keys.length > 0) return accepted
  const warned = ctx.warnUnreachable(appId, waiting)
  return { ...accepted, warnings: warned instanceof Promise ? await warned : warned }
}

async function getTemplate(ctx: MessagesContext, appId: AppId, id: string): Promise<Template> {
  if (!isUuid(id)) throw invalid('template_id must be a UUID')
  const template = await ctx.findTemplate(appId, id.toLowerCase())
  if (!template) throw invalid(`template_id names no template of this app: ${id}`)
  return template
}

/** The literal is in the official clients' error catalogue. */
export const NO_SUBSCRIBERS = 'All included players are not subscribed'

function answerOf(
  targeting: Targeting,
  { keys }: RequestKeys,
  accepted: (AcceptedMessage & { warnings?: string[] }) | undefined,
): CreatedAnswer {
  if (!accepted) return { id: '', errors: [NO_SUBSCRIBERS] }
  const errors = unsubscribedErrors(targeting, accepted.unsubscribed)
  return {
    id: accepted.id,
    external_id: keys[0]?.key ?? null,
    ...(accepted.recipients !== null && { recipients: accepted.recipients }),
    ...(errors && { errors }),
    ...(accepted.warnings && accepted.warnings.length > 0 && { warnings: accepted.warnings }),
  }
}
