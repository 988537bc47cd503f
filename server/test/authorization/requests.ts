// A request for any route: its path filled in, its app named where the route wants it, and a body that it takes.

import type { TSchema } from 'typebox'
import type { ReferencePurpose } from '../../src/email/reference.ts'
import type { Route } from '../../src/http/route.ts'
import { newId } from '../../src/lib/ids.ts'

/** One thing of each kind, all of one app. */
export type Things = {
  organizationId: string
  keyId: string
  userId: string
  externalId: string
  subscriptionId: string
  email: string
  segmentId: string
  templateId: string
  messageId: string
  webhookId: string
  exportId: string
  activityId: string
  administratorId: string
  inAppMessageId: string
  variantId: string
  journeyId: string
  nodeId: string
  journeyWebhookId: string
  emailDomain: string
  suppressed: string
  mailId: string
  /** Of an email to the subscription, of the message; and of a link in it. */
  references: Record<ReferencePurpose, string>
  linkSignature: string
}

const NOTHING = 'a'.repeat(55)
const NO_REFERENCES: Things['references'] = {
  open: NOTHING,
  click: NOTHING,
  view: NOTHING,
  unsubscribe: NOTHING,
  preferences: NOTHING,
  report: NOTHING,
}

export const unknownThings = (): Things => ({
  organizationId: newId(),
  keyId: newId(),
  userId: newId(),
  externalId: `nobody-${newId()}`,
  subscriptionId: newId(),
  email: `${newId()}@example.com`,
  templateId: newId(),
  administratorId: newId(),
  segmentId: newId(),
  inAppMessageId: newId(),
  variantId: newId(),
  journeyId: newId(),
  nodeId: newId(),
  journeyWebhookId: newId(),
  webhookId: newId(),
  messageId: newId(),
  exportId: newId(),
  activityId: newId(),
  emailDomain: `nothing-${newId()}.example`,
  suppressed: `${newId()}@example.com`,
  mailId: newId(),
  references: NO_REFERENCES,
  linkSignature: 'a'.repeat(16),
})

const purposeOf = (path: string): ReferencePurpose => {
  if (path.startsWith('/e/c/')) return 'click'
  if (path.startsWith('/e/v/')) return 'view'
  return path.startsWith('/e/p/') ? 'preferences' : 'unsubscribe'
}

/** What each path parameter stands for. A route with a new one has to say it here. */
const PARAMS: Record<string, (things: Things, label: string, path: string) => string> = {
  alias_label: (_, label) => label,
  alias_id: ({ userId, externalId }, label) => (label === 'onesignal_id' ? userId : externalId),
  alias_label_to_delete: () => 'mark',
  subscription_id: ({ subscriptionId }) => subscriptionId,
  player_id: ({ subscriptionId }) => subscriptionId,
  token_type: () => 'Email',
  token: ({ email }) => email,
  external_user_id: ({ externalId }) => externalId,
  organization_id: ({ organizationId }) => organizationId,
  token_id: ({ keyId }) => keyId,
  template_id: ({ templateId }) => templateId,
  segment_id: ({ segmentId }) => segmentId,
  message_id: ({ messageId }) => messageId,
  webhook_id: ({ webhookId }) => webhookId,
  export_id: ({ exportId }) => exportId,
  activity_id: ({ activityId }) => activityId,
  activity_type: () => 'Order',
  file: ({ exportId }) => `${exportId}.csv.gz`,
  administrator_id: ({ administratorId }) => administratorId,
  in_app_message_id: ({ inAppMessageId }) => inAppMessageId,
  variant_id: ({ variantId }) => variantId,
  journey_id: ({ journeyId }) => journeyId,
  node_id: ({ nodeId }) => nodeId,
  version: () => '1',
  journey_webhook_id: ({ journeyWebhookId }) => journeyWebhookId,
  domain: ({ emailDomain }) => emailDomain,
  address: ({ suppressed }) => suppressed,
  mail_id: ({ mailId }) => mailId,
  reference: ({ references }, _, path) => references[purposeOf(path)],
  signature: ({ linkSignature }) => linkSignature,
  secret: () => 'a-secret-that-nobody-has-set',
  guide: () => 'try-it',
  decision: () => '0001-one-store',
  platform: () => 'android',
  sdk_version: () => '5.9.5',
}

/** Where the link in every email leads. */
export const LINK = 'https://shop.example/'

const FILTERS = [{ field: 'tag', key: 'colour', relation: '=', value: 'red' }]

/** Queries that are required. */
const QUERIES: Record<string, (things: Things) => Record<string, string>> = {
  explainSegment: ({ userId }) => ({ alias_label: 'onesignal_id', alias_id: userId }),
  previewInAppMessage: ({ variantId }) => ({ preview_id: variantId }),
  explainMessage: ({ userId }) => ({ onesignal_id: userId }),
  removeJourneyUser: ({ userId }) => ({ onesignal_id: userId }),
  traceJourneyUser: ({ userId }) => ({ onesignal_id: userId }),
  getEmailProviderMetrics: () => {
    const [start, end] = [new Date(Date.now() - 3_600_000), new Date()]
    return { domain: 'example.com', start: start.toISOString(), end: end.toISOString() }
  },
  getOutcomes: () => ({ outcome_names: 'os__click.count' }),
  clickEmail: () => ({ u: LINK }),
  unsubscribeEmailWithToken: ({ references }) => ({ token: references.unsubscribe }),
  listAuditLogs: () => ({ start_time: new Date().toISOString() }),
}

/** Bodies of operations that ask for more than their schema says. */
const BODIES: Record<string, (things: Things, appId: string) => object> = {
  createUser: () => ({ identity: { external_id: newId() } }),
  updateUser: () => ({ properties: { tags: { colour: 'red' } } }),
  updateAliases: () => ({ identity: { another: newId() } }),
  updateAliasesBySubscription: () => ({ identity: { another: newId() } }),
  createSubscription: () => ({ subscription: { type: 'iOSPush', token: newId() } }),
  transferSubscription: ({ externalId }) => ({ identity: { external_id: externalId } }),
  playerOnPurchase: () => ({ purchases: [{ sku: 'bell', iso: 'EUR', amount: '1.00' }] }),
  createSegment: () => ({ name: newId(), filters: FILTERS }),
  updateSegment: () => ({ name: newId(), filters: FILTERS }),
  previewSegment: () => ({ filters: FILTERS }),
  estimateNotificationRecipients: () => ({ filters: FILTERS }),
  createCustomEvents: ({ userId }) => ({ events: [{ name: 'bell rung', onesignal_id: userId }] }),
  createCustomEventsByOldPath: ({ userId }) => ({ events: [{ name: 'bell rung', onesignal_id: userId }] }),
  createTemplate: () => ({ name: 'A template', contents: { en: 'Hello' } }),
  copyTemplateToApp: (_, appId) => ({ target_app_id: appId }),
  previewTemplate: ({ externalId }) => ({ alias_label: 'external_id', alias_id: externalId }),
  previewUnsavedTemplate: ({ externalId }) => ({
    contents: { en: 'Hello {{ user | json }}' },
    alias_label: 'external_id',
    alias_id: externalId,
  }),
  createNotification: () => ({ contents: { en: 'Hello' }, included_segments: ['Subscribed Users'] }),
  createEventWebhook: () => ({ url: 'https://127.0.0.1/', kinds: ['clicked'] }),
  updateEventWebhook: () => ({ kinds: ['received'] }),
  updateEmailEventSources: () => ({ mailgun: { signing_key: 'a signing key'.replaceAll(' ', '-') } }),
  updateSmsSettings: () => ({ kind: 'twilio', account_sid: 'AC1', auth_token: 'token', from: '+15550001111' }),
  startLiveActivity: () => ({ included_segments: ['Subscribed Users'] }),
  enterLiveActivity: ({ subscriptionId }) => ({ subscription_id: subscriptionId }),
  setStartToken: () => ({ activity_token: 'a token' }),
  setUpdateToken: () => ({ activity_token: 'a token' }),
  addEmailDomain: () => ({ domain: `${newId()}.example`, dkim: { algorithms: ['ed25519'] } }),
  updateEmailDomain: () => ({ state: 'paused' }),
  updateEmailSettings: () => ({ from_address: `${newId()}@example.com` }),
  addEmailSuppressions: () => ({ address: `${newId()}@example.com` }),
  addAdministrator: () => ({ email: `${newId()}@example.com` }),
  createInAppMessage: () => ({ name: 'An in-app message', contents: { en: { title: 'Hello' } } }),
  updateInAppMessage: () => ({ name: newId() }),
  reportInAppImpression: ({ subscriptionId }) => ({ player_id: subscriptionId }),
  reportInAppClick: ({ subscriptionId }) => ({ player_id: subscriptionId }),
  reportInAppPageImpression: ({ subscriptionId }) => ({ player_id: subscriptionId }),
  createJourney: () => ({ name: 'A journey' }),
  updateJourney: () => ({ name: newId() }),
  addJourneyUser: ({ userId }) => ({ onesignal_id: userId, event: {} }),
  updateJourneyNode: () => ({ annotation: newId() }),
  createJourneyWebhook: () => ({ name: 'A webhook', url: 'https://127.0.0.1/' }),
  updateJourneyWebhook: () => ({ name: newId() }),
  addPlayer: () => ({ device_type: 11, identifier: `${newId()}@example.com` }),
}

/** Headers by which a request asks for more. */
const HEADERS: Record<string, (things: Things) => Record<string, string>> = {
  viewInAppMessageHtml: ({ subscriptionId }) => ({ 'onesignal-subscription-id': subscriptionId }),
  previewInAppMessage: ({ subscriptionId }) => ({ 'onesignal-subscription-id': subscriptionId }),
}

export const paramNames = (path: string) => [...path.matchAll(/:(\w+)/g)].map(([, name]) => name as string)

/** Routes that name a thing inside the app can name somebody else's. */
export const namesThings = ({ path }: Route) => paramNames(path).some((name) => !NO_THINGS.includes(name))

/** The app itself, words that mean the same in every app, and references, which are signed and name their own app. */
const NO_THINGS = [
  'app_id',
  'guide',
  'decision',
  'platform',
  'sdk_version',
  'activity_type',
  'reference',
  'signature',
  'secret',
]

/** Users can be named by their id, or by a label of the customer's. */
export const labelsOf = ({ path }: Route) =>
  paramNames(path).includes('alias_label') ? ['onesignal_id', 'external_id'] : ['onesignal_id']

export function paramsOf(route: Route, appId: string, things: Things, label: string): Record<string, string> {
  return Object.fromEntries(
    paramNames(route.path).map((name) => {
      if (name === 'app_id') return [name, appId]
      const make = PARAMS[name]
      if (!make) throw new Error(`${route.operation}: say in requests.ts what :${name} stands for`)
      return [name, make(things, label, route.path)]
    }),
  )
}

export function requestFor(route: Route, appId: string, things: Things, label: string) {
  const { access } = route
  const params = paramsOf(route, appId, things, label)
  const path = route.path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] as string))
  const isApp = access.kind === 'app'
  const query = new URLSearchParams({
    ...('appIn' in access && access.appIn === 'query' && { app_id: appId }),
    ...QUERIES[route.operation]?.(things),
  })
  const body = route.body && {
    ...exampleOf(route.body),
    ...BODIES[route.operation]?.(things, appId),
    ...(isApp && access.appIn === 'body' && { app_id: appId }),
  }
  const headers = HEADERS[route.operation]?.(things) ?? {}
  return { method: route.method, path: query.size > 0 ? `${path}?${query}` : path, headers, body, params }
}

type Schema = TSchema & {
  type?: string | string[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  minItems?: number
  minimum?: number
  format?: string
  enum?: unknown[]
  const?: unknown
  anyOf?: Schema[]
}

/** The least that a schema lets through. */
function exampleOf(schema: Schema): object {
  return example(schema) as object
}

function example(schema: Schema): unknown {
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return schema.enum[0]
  if (schema.anyOf?.[0]) return example(schema.anyOf[0])
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type
  if (type === 'object') {
    const { properties = {}, required = [] } = schema
    return Object.fromEntries(required.map((name) => [name, properties[name] ? example(properties[name]) : 'x']))
  }
  if (type === 'array') return Array.from({ length: schema.minItems ?? 0 }, () => example(schema.items as Schema))
  if (type === 'integer' || type === 'number') return schema.minimum ?? 1
  if (type === 'boolean') return true
  return schema.format === 'uuid' ? newId() : '1'
}
