// Create message, from the body of the request to the answer. Each step has a file of its own and depends on nothing in
// this one.

import { invalid } from '../../lib/errors.ts'
import { type AppId, isUuid } from '../../lib/ids.ts'
import type { Template } from '../../templates/template.ts'
import type { MessagesContext } from '../context.ts'
import type { CreatedAnswer, CreateMessageBody } from '../schema.ts'
import { checkMessageContent } from './check-content.ts'
import { findReplay } from './idempotency.ts'
import { laneFor, subscriptionTypesFor } from './platforms.ts'
import { readMessageContent } from './read-content.ts'
import { readOptions } from './read-options.ts'
import { type MessageRequest, readRequest } from './read-request.ts'
import { channelOfTargeting } from './read-targeting.ts'
import { resolveAudience, targetsOf } from './resolve-audience.ts'
import type { AcceptedMessage, Submission } from './submission.ts'
import { warnUnknownFields } from './warn-unknown-fields.ts'
import { writeAnswer } from './write-answer.ts'

export type SendResult = { answer: CreatedAnswer; isReplay: boolean }

export async function sendMessage(ctx: MessagesContext, appId: AppId, body: CreateMessageBody): Promise<SendResult> {
  const request = readRequest(body, ctx.now())
  const replay = dependsOnStoredNames(request) ? await findReplay(ctx, appId, request) : undefined
  const submission = replay ? undefined : await prepareSubmission(ctx, appId, request)
  const accepted = submission ? await ctx.insertMessage(appId, submission) : replay
  const warnings = [...warnUnknownFields(body), ...(await warnUnreachable(ctx, appId, submission, accepted))]
  return { answer: writeAnswer(request, accepted, warnings), isReplay: accepted?.isReplay === true }
}

/**
 * Such a request is first looked up by its keys: the answer to a retry must not change with the templates and segments
 * that it names, nor may a retry create subscriptions again. For other requests, storing the message detects taken keys
 * without a separate query.
 */
const dependsOnStoredNames = ({ body, targeting: { kind } }: MessageRequest) =>
  Boolean(body.template_id) || kind === 'segments' || kind === 'filters' || kind === 'tokens'

/**
 * The content is checked before the audience is resolved, because resolving unknown addresses creates subscriptions.
 */
async function prepareSubmission(ctx: MessagesContext, appId: AppId, request: MessageRequest): Promise<Submission> {
  const { body, targeting, sendAfter, keys, requestHash } = request
  const template = body.template_id ? await getTemplate(ctx, appId, body.template_id) : undefined
  const content = await readMessageContent(ctx.renderer, appId, body, channelOfTargeting(targeting), template)
  await checkMessageContent(ctx, appId, content, template)
  const options = readOptions(body, content, template, ctx.now())
  const audience = await resolveAudience(ctx, appId, targeting)
  const targets = targetsOf(audience)
  return {
    message: {
      ...content,
      id: ctx.newId(),
      kind: 1,
      isListed: true,
      lane: laneFor(targets),
      name: body.name ?? null,
      templateId: template?.id ?? null,
      audience,
      options,
      sendAfter,
    },
    types: subscriptionTypesFor(content.channel, options.platforms),
    targets,
    keys,
    requestHash,
  }
}

async function getTemplate(ctx: MessagesContext, appId: AppId, id: string): Promise<Template> {
  if (!isUuid(id)) throw invalid('template_id must be a UUID')
  const template = await ctx.findTemplate(appId, id.toLowerCase())
  if (!template) throw invalid(`template_id names no template of this app: ${id}`)
  return template
}

/**
 * A retry with an idempotency key must get the same answer, however the app was configured since. Answers to such
 * requests therefore carry no warnings about unreachable recipients.
 */
const warnUnreachable = (
  ctx: MessagesContext,
  appId: AppId,
  submission: Submission | undefined,
  accepted: AcceptedMessage | undefined,
) => (submission && accepted && submission.keys.length === 0 ? ctx.warnUnreachable(appId, submission) : [])
