// Reads how and when a message is sent. The error for options that exclude each other names both.

import { invalid } from '../../lib/errors.ts'
import type { ContentChannel, ContentFields } from '../../templates/content.ts'
import type { Template } from '../../templates/template.ts'
import type { MessageOptions } from '../message.ts'
import type { CreateMessageBody } from '../schema.ts'
import { parseTimeOfDay } from './parse-time.ts'
import { readPlatforms } from './platforms.ts'
import { readWarmUp } from './read-warm-up.ts'

const DEFAULT_TTL_SECONDS = 259_200
const MAX_CUSTOM_DATA_BYTES: Record<ContentChannel, number> = { push: 2_048, sms: 2_048, email: 10_240 }
const MAX_THROTTLE_PER_MINUTE = 1_000_000_000

export function readOptions(
  body: CreateMessageBody,
  { channel, content }: { channel: ContentChannel; content: ContentFields },
  template: Template | undefined,
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
    ...(template && { template: { name: template.name, dynamicContent: template.dynamicContent } }),
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
  // Without `delivery_time_of_day`, each recipient gets the message at the time of day of `send_after` in their own
  // time zone.
  if (!delivery_time_of_day) return { delayedOption }
  const timeOfDay = parseTimeOfDay(delivery_time_of_day)
  if (timeOfDay === undefined) throw invalid('delivery_time_of_day must be a time such as 9:00AM, 21:45 or 09:45:30')
  return { delayedOption, timeOfDay, timeOfDayGiven: delivery_time_of_day }
}

/** The official client sends the number as a string. */
function readThrottle(value: number | string | null | undefined): number | undefined {
  if (value === undefined || value === null || value === '') return undefined
  const isNumeric = typeof value === 'number' || /^\d{1,10}$/.test(value)
  const rate = isNumeric ? Number(value) : Number.NaN
  if (!Number.isInteger(rate) || rate < 0 || rate > MAX_THROTTLE_PER_MINUTE)
    throw invalid('throttle_rate_per_minute must be a whole number of messages, or 0 for no limit')
  return rate
}

function readCustomData(data: Record<string, unknown>, channel: ContentChannel): Record<string, unknown> {
  const maxBytes = MAX_CUSTOM_DATA_BYTES[channel]
  if (Buffer.byteLength(JSON.stringify(data)) > maxBytes)
    throw invalid(`custom_data must have at most ${maxBytes} bytes`)
  return data
}
