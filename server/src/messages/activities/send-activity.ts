// Live activities are messages: accepted, expanded and delivered like others, to the tokens of activities.

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

/** What Apple takes in one push, all in all. */
const MAX_BYTES = 4_096
/** Longer no activity is updated. */
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
  // The first answer stays, whichever devices have a token by now.
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
  // The first answer stays, whichever devices have a token by now.
  const replay = await findReplay(ctx.messages, appId, keysOf(request))
  if (replay) return { id: replay.id, isReplay: true }
  const holders = await findTokenHolders(ctx.db, appId, { purpose: 'update', name: id }, MAX_TARGETS + 1)
  if (holders.length === 0) throw invalid('No device shows this live activity')
  return accept(ctx, appId, activity, audienceOf(id, holders), request)
}

/** Where there are too many to be named one by one, those who have a token are found when it is expanded. */
const audienceOf = (activityId: string, ids: SubscriptionId[]): Audience =>
  ids.length > MAX_TARGETS
    ? { kind: 'activity', activityId }
    : { kind: 'subscriptions', field: 'include_subscription_ids', given: [], ids }

type Body = StartActivityBody | UpdateActivityBody
/** What is recognized when it comes again: the body, and what the path says. */
type Request = Body & Record<string, unknown>

/** `at` orders what is shown: a device drops what is older than what it has. */
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
      // One activity is many messages; in lists they would hide the others.
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

/** What is said aloud, if anything. */
function readAlert(request: Body): ContentFields {
  const { contents, headings, ios_sound } = request
  const sound = 'sound' in request ? request.sound : undefined
  return readContent({ contents, headings, ios_sound: ios_sound ?? sound })
}
