// A message as the API returns it: the fields of its request, and its state.

import { AppError } from '../lib/errors.ts'
import { type AppId, isUuid } from '../lib/ids.ts'
import type { OutcomesQuery } from '../outcomes/schema.ts'
import { viewOutcomesOfMessage } from '../outcomes/view.ts'
import type { Db } from '../storage/db.ts'
import { platformFlags } from './accept/platforms.ts'
import { countsObject } from './counts/summary.ts'
import type { Audience, Message, MessageId, MessageOptions } from './message.ts'
import { CreateMessageBody } from './schema.ts'
import { findMessage, findMessageCounts, type MessageCount } from './store.ts'

/** This exact text is in the official clients' error catalogue. */
export const messageNotFound = () => new AppError('not-found', { code: 'message-0', title: 'Notification not found' })

/** Reads an id from the path. A text that is not an id names no message. */
export function parseMessageId(given: string): MessageId {
  if (!isUuid(given)) throw messageNotFound()
  return given.toLowerCase()
}

export async function viewMessage(
  { db, now }: { db: Db; now: () => Date },
  appId: AppId,
  id: MessageId,
  query: OutcomesQuery,
) {
  const message = await findMessage(db, appId, id)
  if (!message) throw messageNotFound()
  const outcomes = await viewOutcomesOfMessage({ db, now }, appId, id, query)
  return { ...messageObject(appId, message, await findMessageCounts(db, appId, [id])), outcomes }
}

/** Fields that say how to process the request, and are not part of the message. */
const OF_THE_REQUEST = ['idempotency_key', 'external_id', 'kind', 'isSms', 'channel_for_external_user_ids']
const UNSET = Object.fromEntries(
  Object.keys(CreateMessageBody.properties)
    .filter((name) => !OF_THE_REQUEST.includes(name))
    .map((name) => [name, null]),
)

const seconds = (date: Date) => Math.floor(date.getTime() / 1000)

export function messageObject(appId: AppId, it: Message, counts: readonly MessageCount[]): Record<string, unknown> {
  return {
    ...UNSET,
    ...it.content,
    ...platformFlags(it.channel, it.options.platforms),
    isEmail: it.channel === 'email',
    isSMS: it.channel === 'sms',
    ...targetsObject(it.audience),
    ...optionsObject(it.options),
    email_warm_up: warmUpObject(it),
    app_id: appId,
    id: it.id,
    name: it.name,
    template_id: it.templateId,
    target_channel: it.channel,
    queued_at: seconds(it.queuedAt),
    send_after: seconds(it.sendAfter),
    completed_at: it.completedAt && seconds(it.completedAt),
    canceled: it.state === 'canceled',
    ...countsObject(it.state, counts),
    bcc_sent: copiesOf(it, counts),
    outcomes: [],
  }
}

/** One copy for each BCC address of each email that was sent. */
const copiesOf = ({ content }: Message, counts: readonly MessageCount[]) =>
  (content.email_bcc?.length ?? 0) * counts.reduce((sum, { state, count }) => (state === 'sent' ? sum + count : sum), 0)

/** Lists omit the recipients of messages that have many. */
function targetsObject(audience: Audience): Record<string, unknown> {
  const names = (list: { name: string }[]) => (list.length > 0 ? list.map(({ name }) => name) : null)
  switch (audience.kind) {
    case 'segments':
      return { included_segments: names(audience.included), excluded_segments: names(audience.excluded) }
    case 'filters':
      return { filters: audience.filters, excluded_segments: names(audience.excluded) }
    case 'aliases':
      return {
        [audience.field]: audience.field === 'include_aliases' ? audience.aliases : externalIds(audience.aliases),
      }
    case 'subscriptions':
      return { [audience.field]: audience.given?.length > 0 ? audience.given : (audience.ids ?? null) }
    case 'activity':
    case 'recipients':
      return {}
  }
}

const externalIds = (aliases: Record<string, string[]> | undefined) => (aliases ? Object.values(aliases).flat() : null)

const optionsObject = (it: MessageOptions) => ({
  ttl: it.ttl,
  priority: it.priority,
  delayed_option: it.delayedOption ?? null,
  delivery_time_of_day: it.timeOfDayGiven ?? (it.timeOfDay === undefined ? null : timeOfDay(it.timeOfDay)),
  throttle_rate_per_minute: it.throttlePerMinute ?? null,
  enable_frequency_cap: it.frequencyCap !== false,
  at_least_once: it.atLeastOnce === true,
  is_test: it.isTest === true,
  custom_data: it.customData ?? null,
})

const WARM_UP_STATUS: Record<Message['state'], 'initializing' | 'active' | 'finished' | 'canceled'> = {
  scheduled: 'initializing',
  expanding: 'initializing',
  sending: 'active',
  done: 'finished',
  canceled: 'canceled',
}

function warmUpObject({ options, state }: Message) {
  if (!options.warmUp) return null
  const status = WARM_UP_STATUS[state]
  return { ...options.warmUp, status, is_live: status === 'active' }
}

/** Formats the time of day of messages that were accepted before the original text was stored. */
const timeOfDay = (secondsOfDay: number) =>
  [secondsOfDay / 3600, (secondsOfDay / 60) % 60, secondsOfDay % 60]
    .map((part) => String(Math.floor(part)).padStart(2, '0'))
    .join(':')
