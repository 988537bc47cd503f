// What each caller must be told, whatever the code does. The words are those of the interface: who reaches an app, who may
// do what there, and that nobody learns of an app that is not theirs.

import type { Route } from '../../src/http/route.ts'

export type CallerKind =
  /** A key of this app that may do everything, in whatever way it is written. */
  | 'own'
  | 'own without the permission'
  | 'own from elsewhere'
  | 'sibling app'
  | 'foreign app'
  | 'own organization'
  | 'foreign organization'
  /** Revoked, cut short, unknown, or behind a word that is no scheme. */
  | 'bad key'
  | 'nobody'
  /** The two headers of an SDK, and no key. */
  | 'sdk'

/** Which app the request names: the own one, another of the same organization, one of another, or none that exists. */
export type Target = 'own' | 'sibling' | 'foreign' | 'missing'

export type Verdict = 'let in' | 'no key' | 'bad key' | 'forbidden' | 'no such app'

/** What SDKs do without a token even where the app demands one: they have none at hand there. It opens nothing of a user. */
export const UNPROVEN = [
  'GET /in_app_messages/:in_app_message_id/variants/:variant_id/html',
  'GET /in_app_messages/device_preview',
  'POST /in_app_messages/:in_app_message_id/impression',
  'POST /in_app_messages/:in_app_message_id/click',
  'POST /in_app_messages/:in_app_message_id/pageImpression',
]

/** What an SDK may do without a key, as long as it names a user by nothing but the id that cannot be guessed. */
export const KEYLESS = [
  'POST /apps/:app_id/live_activities/:activity_id/token',
  'DELETE /apps/:app_id/live_activities/:activity_id/token/:subscription_id',
  'PUT /apps/:app_id/activities/tokens/start/:activity_type/subscriptions/:subscription_id',
  'DELETE /apps/:app_id/activities/tokens/start/:activity_type/subscriptions/:subscription_id',
  'PUT /apps/:app_id/activities/tokens/update/:activity_id/subscriptions/:subscription_id',
  'DELETE /apps/:app_id/activities/tokens/update/:activity_id/subscriptions/:subscription_id',
  'PUT /apps/:app_id/activities/clicks/track/:activity_type/subscriptions/:subscription_id',
  'POST /apps/:app_id/activities/clicks/track/:activity_type/subscriptions/:subscription_id',
  'POST /outcomes/measure',
  'POST /outcomes/measure_sources',
  'POST /apps/:app_id/custom_events',
  'POST /apps/:app_id/integrations/custom_events',
  'POST /apps/:app_id/users',
  'GET /apps/:app_id/users/by/:alias_label/:alias_id',
  'PATCH /apps/:app_id/users/by/:alias_label/:alias_id',
  'GET /apps/:app_id/users/by/:alias_label/:alias_id/identity',
  'PATCH /apps/:app_id/users/by/:alias_label/:alias_id/identity',
  'DELETE /apps/:app_id/users/by/:alias_label/:alias_id/identity/:alias_label_to_delete',
  'POST /apps/:app_id/users/by/:alias_label/:alias_id/subscriptions',
  'GET /apps/:app_id/subscriptions/:subscription_id/user/identity',
  'PATCH /apps/:app_id/subscriptions/:subscription_id/user/identity',
  'PATCH /apps/:app_id/subscriptions/:subscription_id',
  'DELETE /apps/:app_id/subscriptions/:subscription_id',
  'PATCH /apps/:app_id/subscriptions/:subscription_id/owner',
  'GET /apps/:app_id/subscriptions/:subscription_id/iams',
  'GET /apps/:app_id/users/by/:alias_label/:alias_id/subscriptions/:subscription_id/iams',
  ...UNPROVEN,
]

/** For a service that signs what it sends. No key opens it, and nobody here has the signature. */
const SIGNED = [
  'POST /feedback/twilio/:app_id',
  'POST /apps/:app_id/email/events/ses',
  'POST /apps/:app_id/email/events/mailgun',
  'POST /apps/:app_id/email/events/sendgrid',
  'POST /apps/:app_id/email/events/postmark',
  'POST /apps/:app_id/email/events/postmark/:secret',
]
export const isSigned = (route: Pick<Route, 'method' | 'path'>) => SIGNED.includes(nameOf(route))

/** What a key of the app's organization may do as well as a key of the app. */
export const OR_ORGANIZATION = [
  'GET /apps/:app_id/sending',
  'POST /apps/:app_id/sending/pause',
  'POST /apps/:app_id/sending/resume',
  'POST /apps/:app_id/sending/enable',
  'GET /apps/:app_id/delivery_settings',
  'PUT /apps/:app_id/delivery_settings',
  'GET /apps/:app_id/notices',
  'GET /apps/:app_id/sms_settings',
  'PUT /apps/:app_id/sms_settings',
  'DELETE /apps/:app_id/sms_settings',
  'GET /apps/:app_id/email/settings',
  'PUT /apps/:app_id/email/settings',
  'DELETE /apps/:app_id/email/settings',
  'POST /apps/:app_id/email/resume',
  'GET /apps/:app_id/email/domains',
  'POST /apps/:app_id/email/domains',
  'GET /apps/:app_id/email/domains/:domain',
  'PUT /apps/:app_id/email/domains/:domain',
  'POST /apps/:app_id/email/domains/:domain/verify',
  'POST /apps/:app_id/email/domains/:domain/rotate',
  'DELETE /apps/:app_id/email/domains/:domain',
  'GET /apps/:app_id/email/suppressions',
  'POST /apps/:app_id/email/suppressions',
  'DELETE /apps/:app_id/email/suppressions/:address',
  'GET /apps/:app_id/email/mailbox',
  'GET /apps/:app_id/email/mailbox/:mail_id',
  'DELETE /apps/:app_id/email/mailbox',
  'GET /apps/:app_id/email/event_sources',
  'PUT /apps/:app_id/email/event_sources',
  'GET /apps/:app_id/event_webhooks',
  'POST /apps/:app_id/event_webhooks',
  'GET /apps/:app_id/event_webhooks/:webhook_id',
  'PATCH /apps/:app_id/event_webhooks/:webhook_id',
  'DELETE /apps/:app_id/event_webhooks/:webhook_id',
  'POST /apps/:app_id/event_webhooks/:webhook_id/rotate',
  'POST /apps/:app_id/event_webhooks/:webhook_id/test',
]

export const nameOf = ({ method, path }: Pick<Route, 'method' | 'path'>) => `${method} ${path}`

export const isAboutAnApp = ({ access, path }: Route) => 'appIn' in access || path.includes(':app_id')

/** How an app takes SDKs without a key: as they are, with a proof of identity, or not at all. */
export type Door = 'open' | 'proving' | 'shut'

export function judge(
  route: Route,
  caller: CallerKind,
  target: Target,
  params: Record<string, string>,
  door: Door,
): Verdict {
  const { kind } = route.access
  if (isSigned(route)) return 'forbidden'
  if (kind === 'public') return 'let in'
  if (caller === 'nobody') return 'no key'
  if (caller === 'bad key') return 'bad key'
  if (caller === 'sdk') {
    const isNamedById = params.alias_label === undefined || params.alias_label === 'onesignal_id'
    const isOpen = door === 'open' || (door === 'proving' && UNPROVEN.includes(nameOf(route)))
    return KEYLESS.includes(nameOf(route)) && isNamedById && isOpen && target !== 'missing' ? 'let in' : 'no key'
  }
  const isOrganization = caller === 'own organization' || caller === 'foreign organization'
  // An organization is as invisible to others as its apps, and no app's key has business with it.
  if (route.path.includes(':organization_id') && isOrganization)
    return reaches(caller, target) ? 'let in' : 'no such app'
  if (isAboutAnApp(route) && !reaches(caller, target)) return 'no such app'
  if (isOrganization && OR_ORGANIZATION.includes(nameOf(route))) return 'let in'
  if (kind !== 'app') return isOrganization ? 'let in' : 'forbidden'
  return isOrganization || caller === 'own without the permission' || caller === 'own from elsewhere'
    ? 'forbidden'
    : 'let in'
}

function reaches(caller: CallerKind, target: Target): boolean {
  if (caller === 'own organization') return target === 'own' || target === 'sibling'
  if (caller === 'foreign organization' || caller === 'foreign app') return target === 'foreign'
  if (caller === 'sibling app') return target === 'sibling'
  return target === 'own'
}

export type Told = { status: number; hasReference: boolean; isObject?: boolean }

/** How a verdict looks. `let in` is not here: what then happens is the operation's. */
export function told(verdict: Exclude<Verdict, 'let in'>, route: Route): Told {
  if (verdict === 'bad key') return { status: 401, hasReference: true, isObject: false }
  if (verdict === 'no key') {
    const isProviderMetrics = /provider_metrics/.test(route.path)
    return { status: 401, hasReference: false, isObject: !isProviderMetrics }
  }
  if (verdict === 'forbidden') return { status: 403, hasReference: false }
  if (nameOf(route) === 'POST /players') return told('bad key', route)
  if (/^\/apps\/:app_id\/segments\b/.test(route.path)) return { status: 400, hasReference: true }
  return { status: 404, hasReference: false }
}
