// Explains why a user did or did not get a message. The deliveries record what was decided; where there is none, the
// message and the subscription provide the reason.

import { invalid, subscriptionNotFound, userNotFound } from '../lib/errors.ts'
import { type AppId, isUuid, type SubscriptionId } from '../lib/ids.ts'
import type { Message } from '../messages/message.ts'
import { channelOfType } from '../segments/filters/evaluate.ts'
import { EXTERNAL_ID } from '../users/aliases/identity.ts'
import { isReachable } from '../users/subscriptions/reachable.ts'
import type { Subscription } from '../users/subscriptions/subscription.ts'
import type { OwnerRef } from '../users/user.ts'
import type { ReportsContext } from './context.ts'
import { deliveryObject } from './deliveries.ts'
import { type Absence, describeAbsence, describeState } from './describe.ts'
import { getMessage } from './get-message.ts'
import { findHolds } from './holds.ts'
import { matchAudience } from './match-audience.ts'
import type { ExplainMessageAnswer, ExplainMessageQuery } from './schema.ts'
import { findDeliveriesTo } from './store.ts'

export async function explainMessage(
  ctx: ReportsContext,
  appId: AppId,
  messageId: string,
  query: ExplainMessageQuery,
): Promise<ExplainMessageAnswer> {
  const ref = readExplainedUser(query)
  const message = await getMessage(ctx.db, appId, messageId)
  const user = await ctx.reader.user(appId, ref)
  if (!user) throw 'subscriptionId' in ref ? subscriptionNotFound() : userNotFound()
  const ids = [...user.subscriptions.keys()]
  const { expandAt } = message
  const deliveries = expandAt ? await findDeliveriesTo(ctx.db, appId, { id: message.id, expandAt }, ids) : []
  const { matching, goneSegments } = await matchAudience(ctx.segments, appId, message, user)

  const explained = [...user.subscriptions.values()].flatMap((it): ExplainMessageAnswer['subscriptions'] => {
    if ('subscriptionId' in ref && ref.subscriptionId !== it.id) return []
    const known = {
      id: it.id,
      type: it.typeSpelling,
      is_subscribed: isReachable(it),
      matches_now: matching.has(it.id),
    }
    const own = deliveries.filter(({ subscriptionId }) => subscriptionId === it.id)
    if (own.length === 0) {
      const absence = absenceOf(message, it, matching.has(it.id))
      return [{ ...known, absence, explanation: describeAbsence(absence, matching.has(it.id)), delivery: null }]
    }
    return own.map((delivery) => ({
      ...known,
      absence: null,
      explanation: describeState(delivery),
      delivery: deliveryObject(delivery),
    }))
  })
  return {
    message_id: message.id,
    onesignal_id: user.id,
    message_state: message.state,
    explanation: summaryOf(message, explained, goneSegments),
    holds: await findHolds(ctx, appId),
    subscriptions: explained,
  }
}

function readExplainedUser({ external_id, onesignal_id, subscription_id }: ExplainMessageQuery): OwnerRef {
  const given = [external_id, onesignal_id, subscription_id].filter((it) => it !== undefined)
  if (given.length !== 1) throw invalid('Name the user by one of external_id, onesignal_id and subscription_id')
  if (external_id !== undefined) return { label: EXTERNAL_ID, value: external_id }
  const [name, id] = onesignal_id !== undefined ? ['onesignal_id', onesignal_id] : ['subscription_id', subscription_id]
  if (!isUuid(id as string)) throw invalid(`${name} must be a UUID`)
  const lower = (id as string).toLowerCase()
  return onesignal_id !== undefined ? { id: lower } : { subscriptionId: lower as SubscriptionId }
}

/** Returns the first applicable reason, ordered from the most permanent to the most temporary. */
function absenceOf(message: Message, it: Subscription, matchesNow: boolean): Absence {
  const { channel, state, options, expandAt, expandedTo, lane } = message
  if (channelOfType(it.type) !== channel) return 'other_channel'
  if (options.platforms && !options.platforms.includes(it.type)) return 'platform_not_chosen'
  if (state === 'canceled' && expandAt === null) return 'canceled'
  if (expandAt === null) return 'not_expanded_yet'
  // A recipient that was added is waiting or was expanded; others may still be added at any time.
  if (message.audience.kind === 'recipients') return matchesNow ? 'not_expanded_yet' : 'not_in_audience'
  const isAhead = state === 'expanding' && lane === 'bulk' && (expandedTo === null || it.id > expandedTo)
  if (isAhead) return 'not_expanded_yet'
  if (new Date(it.createdAt) > expandAt) return 'created_later'
  return 'not_in_audience'
}

function summaryOf(
  { state, sendAfter, channel }: Message,
  explained: ExplainMessageAnswer['subscriptions'],
  goneSegments: string[],
): string {
  // A subscription has several deliveries when it took part in several runs.
  const inState = (...states: string[]) =>
    new Set(explained.flatMap(({ id, delivery }) => (delivery && states.includes(delivery.state) ? [id] : []))).size
  const sent = inState('sent')
  const waiting = inState('pending', 'sending')
  const whole =
    sent > 0
      ? `It was sent to ${counted(sent)} of this user.`
      : waiting > 0
        ? `It waits to be sent to ${counted(waiting)} of this user.`
        : explained.some(({ absence }) => absence !== 'other_channel')
          ? 'It was not sent to this user.'
          : `This user has no subscription of the channel ${channel}.`
  const when = state === 'scheduled' ? ` The message is scheduled for ${sendAfter.toISOString()}.` : ''
  const gone = goneSegments.length > 0 ? ` These segments of it were deleted since: ${goneSegments.join(', ')}.` : ''
  return `${whole}${when}${gone}`
}

const counted = (count: number) => (count === 1 ? '1 subscription' : `${count} subscriptions`)
