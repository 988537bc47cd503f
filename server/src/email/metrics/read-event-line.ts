// Parses one line of events to be loaded: a JSON object that says what happened to an email, or whether a domain is
// active.

import { readDateTime } from '../../lib/date-time.ts'
import { type AppId, isUuid } from '../../lib/ids.ts'
import { ownProperty } from '../../lib/own-property.ts'
import { codePoints } from '../../lib/text.ts'
import { type InboxProvider, inboxProviders, isInboxProvider, readDomain } from '../inbox-providers/providers.ts'
import { oldestRetained } from './retention.ts'

export const emailEventNames = ['sent', 'delivered', 'opened', 'clicked', 'failed', 'bounced', 'complained'] as const
export type EmailEventName = (typeof emailEventNames)[number]

export type EventLine = {
  appId: AppId
  domain: string
  event: EmailEventName
  at: Date
  /** In lower case. */
  recipient: string
  messageId: string | undefined
  provider: InboxProvider | undefined
}
export type DomainLine = { appId: AppId; domain: string; isActive: boolean }
export type LoadLine = EventLine | DomainLine

/** Describes what is wrong with a line. */
export class LineError extends Error {}

const MAX_TEXT = 1_000
const MAX_AHEAD_MS = 31 * 86_400_000
const ADDRESS = /^[^\s@](?:.*\S)?@[^\s@]+$/

export function parseLoadLine(text: string, now: Date): LoadLine {
  const given = parse(text)
  const appId = textIn(given, 'app_id')
  if (!isUuid(appId)) throw new LineError('app_id must be a UUID')
  const domain = readDomain(textIn(given, 'domain'))
  if (domain === undefined) throw new LineError('domain must be the name of a domain')
  const common = { appId: appId.toLowerCase(), domain }
  if (given.active === undefined) return { ...common, ...readEvent(given, now) }
  if (typeof given.active !== 'boolean') throw new LineError('active must be true or false')
  if (given.event !== undefined)
    throw new LineError('a line has an event or says whether the domain is active, not both')
  return { ...common, isActive: given.active }
}

function readEvent(given: Record<string, unknown>, now: Date): Omit<EventLine, 'appId' | 'domain'> {
  const { event, provider, message_id } = given
  if (!isEvent(event)) throw new LineError(`event must be one of ${emailEventNames.join(', ')}`)
  const recipient = textIn(given, 'recipient').toLowerCase()
  if (!ADDRESS.test(recipient)) throw new LineError('recipient must be an email address')
  if (provider != null && !isInboxProvider(provider))
    throw new LineError(`provider must be one of ${inboxProviders.join(', ')}`)
  return {
    event,
    recipient,
    at: readTime(textIn(given, 'at'), now),
    provider: provider ?? undefined,
    messageId: message_id == null ? undefined : textIn(given, 'message_id'),
  }
}

const isEvent = (name: unknown): name is EmailEventName => (emailEventNames as readonly unknown[]).includes(name)

function readTime(text: string, now: Date): Date {
  const time = readDateTime(text)
  if (!time) throw new LineError('at must be a date-time of RFC 3339, as 2030-01-31T09:30:00Z')
  if (time.at < oldestRetained(now))
    throw new LineError('at lies more than 400 days in the past, which is kept no more')
  if (time.at.getTime() > now.getTime() + MAX_AHEAD_MS) throw new LineError('at lies more than 31 days in the future')
  return time.at
}

function parse(text: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new LineError('is not JSON')
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new LineError('must be an object')
  return value as Record<string, unknown>
}

function textIn(given: Record<string, unknown>, name: string): string {
  const value = ownProperty(given, name)
  if (value === undefined || value === null) throw new LineError(`${name} is required`)
  if (typeof value !== 'string') throw new LineError(`${name} must be a string`)
  if (value === '') throw new LineError(`${name} must not be empty`)
  if (codePoints(value) > MAX_TEXT) throw new LineError(`${name} must have at most ${MAX_TEXT} characters`)
  return value
}
