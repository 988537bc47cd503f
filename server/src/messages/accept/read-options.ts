// How and when a message is sent. Options that cannot be had together are refused by both their names.

import { invalid } from '../../lib/errors.ts'
import type { ContentChannel, ContentFields } from '../../templates/content.ts'
import type { MessageOptions } from '../message.ts'
import type { CreateMessageBody } from '../schema.ts'
import { parseInstant, parseTimeOfDay } from './parse-time.ts'
import { readPlatforms } from './platforms.ts'
import { readWarmUp } from './read-warm-up.ts'

const DEFAULT_TTL_SECONDS = 259_200
const MAX_CUSTOM_DATA_BYTES: Record<ContentChannel, number> = { push: 2_048, sms: 2_048, email: 10_240 }
const MAX_THROTTLE = 1_000_000_000

/** Not before now: what lies in the past is due. */
export function readSendAfter({ send_after }: CreateMessageBody, now: Date): Date {
  if (send_after === undefined || send_after === null) return now
  const moment = parseInstant(send_after)
  if (!moment)
    throw invalid('send_after is not understood; write it like 2030-09-24T14:00:00Z or 2030-09-24 14:00:00 GMT-0700')
  return moment < now ? now : moment
}

export function readOptions(
  body: CreateMessageBody,
  channel: ContentChannel,
  content: ContentFields,
  now: Date,
): MessageOptions {
  const warmUp = readWarmUp(body, channel, now)
  const throttlePerMinute = readThrottle(body.throttle_rate_per_minute)
  if (throttlePerMinute && channel !== 'push')
    throw invalid(`throttle_rate_per_minute is for push alone, and target_channel is ${channel}`)
  const delay = readDelay(body, channel)
  if (delay && throttlePerMinute) throw invalid('delayed_option cannot be combined with throttle_rate_per_minute')
  if (content.include_unsubscribed && channel !== 'email')
    throw invalid(`include_unsubscribed is for email alone, and target_channel is ${channel}`)
  const platforms = channel === 'push' ? readPlatforms(content) : undefined
  return {
    ttl: content.ttl ?? DEFAULT_TTL_SECONDS,
    priority: content.priority ?? 10,
    ...delay,
    ...(throttlePerMinute !== undefined && { throttlePerMinute }),
    ...(body.enable_frequency_cap === false && { frequencyCap: false }),
    ...(body.at_least_once && { atLeastOnce: true }),
    ...(body.is_test && { isTest: true }),
    ...(platforms && { platforms }),
    ...(content.include_unsubscribed && { includeUnsubscribed: true }),
    ...(warmUp && { warmUp }),
    ...(body.custom_data && { customData: readCustomData(body.custom_data, channel) }),
  }
}

function readDelay(
  { delayed_option, delivery_time_of_day }: CreateMessageBody,
  channel: ContentChannel,
): Pick<MessageOptions, 'delayedOption' | 'timeOfDay' | 'timeOfDayGiven'> | undefined {
  const delayedOption = delayed_option === 'timezone' || delayed_option === 'last-active' ? delayed_option : undefined
  if (delivery_time_of_day && delayedOption !== 'timezone')
    throw invalid(
      delayedOption
        ? 'delivery_time_of_day cannot be combined with delayed_option last-active'
        : 'delivery_time_of_day needs delayed_option timezone',
    )
  if (!delayedOption) return undefined
  if (channel === 'sms') throw invalid('delayed_option cannot be combined with target_channel sms')
  if (delayedOption === 'last-active') return { delayedOption }
  // Without an hour of its own it is the one of send_after, on everybody's own clock.
  if (!delivery_time_of_day) return { delayedOption }
  const timeOfDay = parseTimeOfDay(delivery_time_of_day)
  if (timeOfDay === undefined) throw invalid('delivery_time_of_day must be a time such as 9:00AM, 21:45 or 09:45:30')
  return { delayedOption, timeOfDay, timeOfDayGiven: delivery_time_of_day }
}

/** The official client sends the number as a text. */
function readThrottle(given: number | string | null | undefined): number | undefined {
  if (given === undefined || given === null || given === '') return undefined
  const rate = typeof given === 'number' ? given : /^\d{1,10}$/.test(given) ? Number(given) : Number.NaN
  if (!Number.isInteger(rate) || rate < 0 || rate > MAX_THROTTLE)
    throw invalid('throttle_rate_per_minute must be a whole number of messages, or 0 for no limit')
  return rate
}

function readCustomData(data: Record<string, unknown>, channel: ContentChannel): Record<string, unknown> {
  const most = MAX_CUSTOM_DATA_BYTES[channel]
  if (Buffer.byteLength(JSON.stringify(data)) > most) throw invalid(`custom_data must have at most ${most} bytes`)
  return data
}
