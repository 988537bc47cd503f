// The table of all request limits. Routes name a rule; how much it allows depends on the app's plan, on the operator's
// settings for the app, and on the LIMITS setting.

import { ownProperty } from '../lib/own-property.ts'
import { sha256 } from '../lib/secrets.ts'
import { isStorable } from '../lib/text.ts'

export type LimitPlan = 'free' | 'paid'
export type Profile = 'default' | 'spec' | 'off'

type Rule = {
  /** Requests per second. */
  perSecond: Record<LimitPlan, number>
  /** One counter for the whole app, one per endpoint, or one per endpoint and resource. */
  scope: 'app' | 'endpoint' | 'subject'
  /** The two limits of 1 request/second break ordinary clients when enforced per second; `default` averages them. */
  averaged: boolean
}

const always = (perSecond: number): Record<LimitPlan, number> => ({ free: perSecond, paid: perSecond })
const MESSAGES: Record<LimitPlan, number> = { free: 150, paid: 6_000 }

const rules = new Map<string, Rule>([
  // Creating and canceling share one counter, whatever the method.
  ['messages', { perSecond: MESSAGES, scope: 'app', averaged: false }],
  ['events', { perSecond: MESSAGES, scope: 'app', averaged: false }],
  ['outcomes', { perSecond: MESSAGES, scope: 'app', averaged: false }],
  ['users.write', { perSecond: always(1_000), scope: 'endpoint', averaged: false }],
  ['users.one', { perSecond: always(1), scope: 'subject', averaged: true }],
  ['view', { perSecond: always(1), scope: 'endpoint', averaged: true }],
  ['lookback', { perSecond: always(10), scope: 'endpoint', averaged: false }],
  // Each request generates keys, which takes CPU time.
  ['email.keys', { perSecond: always(1), scope: 'app', averaged: true }],
  ['write', { perSecond: always(1_000), scope: 'endpoint', averaged: false }],
  ['read', { perSecond: always(100), scope: 'endpoint', averaged: false }],
])

export const hasRule = (name: string) => rules.has(name)
export const ruleNames = (): string[] => [...rules.keys()]

function ruleOf(name: string): Rule {
  const rule = rules.get(name)
  if (!rule) throw new Error(`there is no limit named ${name}`)
  return rule
}

const SECOND_MS = 1_000
const MINUTE_MS = 60_000
/** No limit looks back further, so older entries can be forgotten. */
export const LONGEST_WINDOW_MS = MINUTE_MS

export type Allowance = { limit: number; windowMs: number }

/** At most `limit` in any `windowMs`. Overrides are requests per second; 0 refuses everything. */
export function windowFor(
  name: string,
  plan: LimitPlan,
  overrides: Record<string, number>,
  profile: Profile,
): Allowance {
  const rule = ruleOf(name)
  if (profile === 'off') return { limit: Number.POSITIVE_INFINITY, windowMs: SECOND_MS }
  const override = ownProperty(overrides, name)
  const perSecond = override !== undefined && override >= 0 ? override : rule.perSecond[plan]
  const windowMs = rule.averaged && profile === 'default' ? MINUTE_MS : SECOND_MS
  const limit = (perSecond * windowMs) / SECOND_MS
  // Half a request per second means one in two seconds; less than one per minute counts as one per minute.
  if (limit > 0 && limit < 1) return { limit: 1, windowMs: Math.min(windowMs / limit, LONGEST_WINDOW_MS) }
  return { limit: Math.floor(limit), windowMs }
}

/** Keys are stored in an index, which accepts neither every character nor every length. */
const LONGEST_SUBJECT = 200

export type RuleCharge = { rule: string; counter: string; subject?: string }

/** The counter, within its app, that a charge is taken from. */
export function counterKey({ rule: name, counter, subject }: RuleCharge): string {
  const { scope } = ruleOf(name)
  if (scope === 'app') return name
  if (scope === 'endpoint') return `${name} ${counter}`
  if (subject === undefined) throw new Error(`the limit ${name} counts per single thing and was given none`)
  const fits = subject.length <= LONGEST_SUBJECT && isStorable(subject)
  return `${name} ${counter} ${fits ? subject : sha256(subject).toString('hex')}`
}
