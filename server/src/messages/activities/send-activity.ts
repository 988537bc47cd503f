// Live activities are messages: they are accepted, expanded and delivered like others, but go to the tokens of
// activities.

import { invalid } from '../../lib/errors.ts'
import type { AppId, SubscriptionId } from '../../lib/ids.ts'
import { type ContentFields, readContent } from '../../templates/content.ts'
import { prepareContent } from '../../templates/prepare-content.ts'
import { findReplay, readKeys } from '../accept/idempotency.ts'
import { laneFor } from '../accept/platforms.ts'
import { readTargeting } from '../accept/read-targeting.ts'
import { resolveAudience, targetsOf } from '../accept/resolve-audience.ts'
import { NO_SUBSCRIBERS } from '../accept/write-answer.ts'
import type { Audience, LiveActivity, MessageId } from '../message.ts'
import { type CreateMessageBody, MAX_TARGETS } from '../schema.ts'
import type { ActivitiesContext } from './context.ts'
import type { StartActivityBody, UpdateActivityBody } from './schema.ts'
import { findTokenHolders } from './store.ts'

export type SendActivityResult = { id: MessageId; isReplay: boolean }

/** Apple's limit for the total size of one push. */
const MAX_BYTES = 4_096
/** An activity is not updated for longer than this. */
const TTL_SECONDS = 8 * 3_600

export async function startActivity(ctx: ActivitiesContext, appId: AppId, type: string, body: StartActivityBody) {
  const activity: LiveActivity = {
    ...readCommon(ctx, body),
    event: 'start',
    id: body.activity_id,
    type,
    attributes: body.event_attributes,
  }
  checkSize(body.event_updates, body.event_attributes)
  const request = { ...body, activity_type: type }
  // A retry gets the first answer, even if other devices have a token by now.
  const replay = await findReplay(ctx.messages, appId, keysOf(request))
  if (replay) return { id: replay.id, isReplay: true }
  const targeting = readTargeting({ ...body, target_channel: 'push' } as unknown as CreateMessageBody)
  const audience = await resolveAudience(ctx.messages, appId, targeting)
  return accept(ctx, appId, activity, audience, request)
}

export async function updateActivity(ctx: ActivitiesContext, appId: AppId, id: string, body: UpdateActivityBody) {
  if (body.event !== 'end' && body.dismissal_date != null) throw invalid('dismissal_date is for the event "end" alone')
  const activity: LiveActivity = {
    ...readCommon(ctx, body),
    event: body.event,
    id,
    ...(body.dismissal_date != null && { dismissAt: body.dismissal_date }),
  }
  checkSize(body.event_updates)
  const request = { ...body, activity_id: id }
  // A retry gets the first answer, even if other devices have a token by now.
  const replay = await findReplay(ctx.messages, appId, keysOf(request))
  if (replay) return { id: replay.id, isReplay: true }
  const holders = await findTokenHolders(ctx.db, appId, { purpose: 'update', name: id }, MAX_TARGETS + 1)
  if (holders.length === 0) throw invalid('No device shows this live activity')
  return accept(ctx, appId, activity, audienceOf(id, holders), request)
}

/**
 * If there are too many subscriptions to name them one by one, those that have a token are looked up when the message
 * is expanded.
 */
const audienceOf = (activityId: string, ids: SubscriptionId[]): Audience =>
  ids.length > MAX_TARGETS
    ? { kind: 'activity', activityId }
    : { kind: 'subscriptions', field: 'include_subscription_ids', given: [], ids }

type Body = StartActivityBody | UpdateActivityBody
/** What identifies a repeated request: the body, and the parameters in the path. */
type Request = Body & Record<string, unknown>

/** `at` orders the updates: a device drops those that are older than what it shows. */
const readCommon = ({ messages }: ActivitiesContext, body: Body) => ({
  at: messages.now().toISOString(),
  state: body.event_updates,
  ...(body.stale_date != null && { staleAt: body.stale_date }),
  ...(body.ios_relevance_score != null && { relevanceScore: body.ios_relevance_score }),
})

function checkSize(...objects: object[]) {
  const bytes = Buffer.byteLength(objects.map((it) => JSON.stringify(it)).join(''))
  if (bytes > MAX_BYTES)
    throw invalid(`event_updates and event_attributes have ${bytes} bytes; Apple takes ${MAX_BYTES} in all`)
}

const keysOf = (request: Request) => readKeys(request as unknown as CreateMessageBody)

async function accept(
  { messages }: ActivitiesContext,
  appId: AppId,
  activity: LiveActivity,
  audience: Audience,
  request: Request,
): Promise<SendActivityResult> {
  const content = readAlert(request)
  if (content.contents || content.headings) await prepareContent(messages.renderer, appId, content, null)
  const targets = targetsOf(audience)
  const platforms = ['iOSPush']
  const accepted = await messages.insertMessage(appId, {
    message: {
      id: messages.newId(),
      channel: 'push',
      kind: 1,
      // One activity causes many messages, which would crowd out the others in lists.
      isListed: false,
      lane: laneFor(targets),
      name: request.name,
      templateId: null,
      audience,
      content,
      emailHtml: null,
      options: { ttl: TTL_SECONDS, priority: request.priority ?? 10, platforms, frequencyCap: false, activity },
      sendAfter: messages.now(),
    },
    types: platforms,
    targets,
    ...keysOf(request),
  })
  if (!accepted) throw invalid(NO_SUBSCRIBERS)
  return { id: accepted.id, isReplay: accepted.isReplay }
}

/** Reads the alert that accompanies the update, if there is one. */
function readAlert(request: Body): ContentFields {
  const { contents, headings, ios_sound } = request
  const sound = 'sound' in request ? request.sound : undefined
  return readContent({ contents, headings, ios_sound: ios_sound ?? sound })
}
