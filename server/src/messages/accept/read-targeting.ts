// Reads whom a request targets. It must do so in exactly one way. Nothing here needs a lookup.

import { invalid } from '../../lib/errors.ts'
import { isUuid, type SubscriptionId } from '../../lib/ids.ts'
import { readFilters } from '../../segments/filters/read-filters.ts'
import type { SegmentFilter } from '../../segments/filters/tree.ts'
import type { ContentChannel } from '../../templates/content.ts'
import { EXTERNAL_ID, ONESIGNAL_ID } from '../../users/aliases/identity.ts'
import { isEmail, isPhoneNumber, type SubscriptionType } from '../../users/subscriptions/subscription.ts'
import { type CreateMessageBody, MAX_TARGETS, type TargetField } from '../schema.ts'

export type Targeting =
  | { kind: 'segments'; included: string[]; excluded: string[] }
  | { kind: 'filters'; filters: SegmentFilter[]; excluded: string[] }
  | { kind: 'aliases'; field: 'include_aliases' | 'include_external_user_ids'; aliases: Record<string, string[]> }
  | { kind: 'subscriptions'; field: TargetField; ids: SubscriptionId[] }
  /** Push tokens, email addresses and phone numbers. Those that are not known yet become subscriptions. */
  | { kind: 'tokens'; field: TargetField; type: SubscriptionType; tokens: string[] }

/** This exact text is in the official clients' error catalogue. */
const NO_TARGETING = 'You must include which players, segments, or tags you wish to send this notification to.'

const TOKENS = {
  email_to: 'Email',
  include_email_tokens: 'Email',
  include_phone_numbers: 'SMS',
  include_ios_tokens: 'iOSPush',
  include_android_reg_ids: 'AndroidPush',
  include_chrome_web_reg_ids: 'ChromePush',
  include_chrome_reg_ids: 'ChromeExtensionPush',
  include_amazon_reg_ids: 'FireOSPush',
  include_wp_wns_uris: 'WindowsPush',
} as const satisfies Partial<Record<TargetField, SubscriptionType>>
type TokenField = keyof typeof TOKENS
const tokenFields = Object.keys(TOKENS) as TokenField[]

const strategies = [
  'include_aliases',
  'include_subscription_ids',
  'included_segments',
  'filters',
  'include_player_ids',
  'include_external_user_ids',
  ...tokenFields,
] as const satisfies TargetField[]

type Strategy = (typeof strategies)[number]
const strategyNames: ReadonlySet<string> = new Set(strategies)

const MAX_TOKEN = 4_096

/** Empty lists target nobody: some clients send one for each field that they leave out. */
function isGiven(value: object | null | undefined): boolean {
  if (value === undefined || value === null) return false
  return Array.isArray(value) ? value.length > 0 : Object.keys(value).length > 0
}

/** Only a few of the body's fields are targeting strategies; exactly one of those may be set. */
function readStrategy(body: CreateMessageBody): Strategy {
  let given: Strategy | undefined
  for (const name in body) {
    if (!strategyNames.has(name) || !isGiven(body[name as Strategy])) continue
    if (given !== undefined) throw severalWays(body)
    given = name as Strategy
  }
  if (given === undefined) throw invalid(NO_TARGETING)
  return given
}

function severalWays(body: CreateMessageBody) {
  const given = strategies.filter((name) => isGiven(body[name]))
  return invalid(`Only one way of naming recipients can be used: ${given.join(' and ')} are given`)
}

export function readTargeting(body: CreateMessageBody): Targeting {
  const field = readStrategy(body)
  const excluded = unique(body.excluded_segments)
  if (excluded.length > 0 && field !== 'included_segments' && field !== 'filters')
    throw invalid(`excluded_segments cannot be combined with ${field}`)

  if (field === 'included_segments') return { kind: 'segments', included: unique(body[field]), excluded }
  if (field === 'filters') return { kind: 'filters', filters: readFilters(body[field]).filters, excluded }
  if (field === 'include_aliases') return { kind: 'aliases', field, aliases: readAliases(body) }
  if (field === 'include_external_user_ids')
    return { kind: 'aliases', field, aliases: { [EXTERNAL_ID]: unique(body[field]) } }
  if (field === 'include_subscription_ids' || field === 'include_player_ids')
    return { kind: 'subscriptions', field, ids: readIds(field, body[field] ?? []) }
  return { kind: 'tokens', field, type: TOKENS[field], tokens: readTokens(field, body[field] ?? []) }
}

/** The channel that the way of targeting implies. */
export function channelOfTargeting(targeting: Targeting): ContentChannel | undefined {
  if (targeting.kind !== 'tokens') return undefined
  return targeting.type === 'Email' ? 'email' : targeting.type === 'SMS' ? 'sms' : 'push'
}

const unique = (list: string[] | null | undefined) => (list && list.length > 1 ? [...new Set(list)] : [...(list ?? [])])

function readAliases({ include_aliases, target_channel }: CreateMessageBody): Record<string, string[]> {
  if (!target_channel) throw invalid('target_channel is required with include_aliases: push, email or sms')
  const aliases: Record<string, string[]> = Object.create(null)
  let count = 0
  for (const [label, values] of Object.entries(include_aliases ?? {})) {
    const isId = label === ONESIGNAL_ID
    const wrong = isId ? values.find((value) => !isUuid(value)) : undefined
    if (wrong !== undefined) throw invalid(`include_aliases.onesignal_id: "${shown(wrong)}" is not a valid UUID`)
    aliases[label] = unique(isId ? values.map((value) => value.toLowerCase()) : values)
    count += aliases[label].length
  }
  if (count === 0) throw invalid(NO_TARGETING)
  if (count > MAX_TARGETS) throw invalid(`include_aliases can name at most ${MAX_TARGETS} users`)
  return aliases
}

function readIds(field: 'include_subscription_ids' | 'include_player_ids', given: string[]): SubscriptionId[] {
  const wrong = given.find((id) => !isUuid(id))
  const noun = field === 'include_player_ids' ? 'player_id' : 'subscription_id'
  if (wrong !== undefined)
    throw invalid(`Incorrect ${noun} format in ${field} (not a valid UUID): ${shown(wrong)}`, { field })
  return unique(given.map((id) => id.toLowerCase()))
}

function readTokens(field: TokenField, given: string[]): string[] {
  const type = TOKENS[field]
  for (const [i, token] of given.entries()) {
    if (type === 'Email' && !isEmail(token))
      throw invalid(`${field}[${i}]: "${shown(token)}" is not a valid email address`)
    if (type === 'SMS' && !isPhoneNumber(token))
      throw invalid(`${field}[${i}]: "${shown(token)}" is not a phone number in E.164 form, such as +15558675309`)
    if (token === '' || token.length > MAX_TOKEN)
      throw invalid(`${field}[${i}] must have between 1 and ${MAX_TOKEN} characters`)
  }
  if (type !== 'Email') return unique(given)
  return [...new Map(given.map((address) => [address.toLowerCase(), address])).values()]
}

const shown = (text: string) => (text.length > 200 ? `${text.slice(0, 200).toWellFormed()}…` : text)
