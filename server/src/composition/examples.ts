// Realistic request bodies by operation, with one shop and one customer throughout, so that each example continues
// another. They appear in the OpenAPI description, from which the pages of /docs build their curl and Node examples. An
// operation that is missing here gets the smallest body that its schema allows.

import type { Route } from '../http/route.ts'

const ID = '7d0e6c5e-1f0b-4c52-9a53-2b1c2c9b4e0f'
const PLAYER = { app_id: ID, player_id: ID }
const GOLD = { field: 'tag', key: 'plan', relation: '=', value: 'gold' }
const PUSH = { headings: { en: 'Spring sale' }, contents: { en: 'Everything is half the price until Sunday.' } }
const EVENTS = {
  events: [{ external_id: 'you', name: 'order_placed', properties: { total: 42.5, currency: 'EUR' } }],
}
const ACTIVITY = {
  name: 'Order on its way',
  event_updates: { status: 'on its way', minutes: 12 },
  contents: { en: 'Your order is on its way.' },
}
const HOOK = 'https://example.com/hooks/carillon'

const examples: Record<string, unknown> = {
  createUser: {
    identity: { external_id: 'you' },
    properties: { tags: { plan: 'gold' }, language: 'en', timezone_id: 'Europe/Berlin' },
    subscriptions: [{ type: 'Email', token: 'you@example.com' }],
  },
  updateUser: { properties: { tags: { plan: 'gold', trial: '' } } },
  updateAliases: { identity: { crm_id: '1042' } },
  updateAliasesBySubscription: { identity: { crm_id: '1042' } },
  createSubscription: { subscription: { type: 'SMS', token: '+15005550001' } },
  updateSubscription: { subscription: { enabled: false, notification_types: -2 } },
  updateSubscriptionByToken: { subscription: { enabled: false, notification_types: -2 } },
  transferSubscription: { identity: { external_id: 'you' } },
  addPlayer: { app_id: ID, device_type: 11, identifier: 'you@example.com', tags: { plan: 'gold' } },
  editPlayer: { app_id: ID, tags: { plan: 'gold' } },
  playerOnSession: { app_id: ID, language: 'en' },
  playerOnFocus: { app_id: ID, active_time: 60 },
  playerOnFocusPost: { app_id: ID, active_time: 60 },
  playerOnPurchase: { app_id: ID, purchases: [{ sku: 'SKU123', iso: 'EUR', amount: '42.50' }] },
  changeTagsByExternalId: { tags: { plan: 'gold' } },
  createCustomEvents: EVENTS,
  createCustomEventsByOldPath: EVENTS,

  createSegment: { name: 'Gold customers', filters: [GOLD] },
  updateSegment: {
    name: 'Gold customers abroad',
    filters: [GOLD, { field: 'country', relation: 'in_array', value: 'DE, AT, CH' }],
  },
  previewSegment: { filters: [GOLD] },
  estimateNotificationRecipients: { app_id: ID, included_segments: ['Total Subscriptions'] },

  createTemplate: { app_id: ID, name: 'Spring sale', ...PUSH },
  updateTemplate: { contents: { en: 'Half the price, {{ user.tags.first_name }}.' } },
  copyTemplateToApp: { target_app_id: ID },
  previewTemplate: { alias_label: 'external_id', alias_id: 'you' },
  previewUnsavedTemplate: { app_id: ID, contents: { en: 'Hello {{ user.tags.first_name }}' } },

  createNotification: {
    app_id: ID,
    target_channel: 'push',
    include_aliases: { external_id: ['you'] },
    ...PUSH,
  },
  reportOpened: { ...PLAYER, opened: true },
  reportReceived: PLAYER,
  getNotificationHistory: { app_id: ID, events: 'clicked' },
  exportSubscriptions: { extra_fields: ['external_user_id', 'timezone_id'], segment_name: 'Total Subscriptions' },
  measureOutcome: { app_id: ID, id: 'purchase', weight: 42.5, device_type: 1 },
  measureOutcomeSources: {
    app_id: ID,
    id: 'purchase',
    weight: 42.5,
    sources: { direct: { notification_ids: [ID] } },
  },

  createInAppMessage: {
    name: 'Spring sale',
    state: 'live',
    contents: { en: { title: 'Spring sale', body: 'Everything is half the price until Sunday.' } },
    included_segments: ['Total Subscriptions'],
  },
  updateInAppMessage: { state: 'paused' },
  reportInAppClick: { ...PLAYER, variant_id: ID, click_id: 'shop', first_click: true },
  reportInAppImpression: { ...PLAYER, variant_id: ID, first_impression: true },
  reportInAppPageImpression: { ...PLAYER, variant_id: ID, page_id: 'first' },

  startLiveActivity: {
    event: 'start',
    activity_id: 'order-1042',
    ...ACTIVITY,
    event_attributes: { order: '1042' },
    include_aliases: { external_id: ['you'] },
  },
  updateLiveActivity: { event: 'update', ...ACTIVITY },
  enterLiveActivity: { subscription_id: ID, push_token: 'aa5e50b3c1' },
  setStartToken: { token: 'aa5e50b3c1' },
  setUpdateToken: { token: 'aa5e50b3c1' },
  trackActivityClick: { activity_id: 'order-1042' },
  trackActivityClickByPost: { activity_id: 'order-1042' },

  createJourney: {
    name: 'Welcome',
    audience: { kind: 'segment', included_segment_ids: [ID] },
    nodes: [
      { kind: 'send_push', template_id: ID },
      { kind: 'wait', duration_seconds: 86_400 },
      { kind: 'tag', assignments: { welcomed: 'yes' } },
    ],
  },
  updateJourney: { state: 'active' },
  updateJourneyNode: { duration_seconds: 3_600 },
  duplicateJourney: { name: 'Welcome, second try' },
  simulateJourney: { days: 14 },
  addJourneyUser: { external_id: 'you' },
  createJourneyWebhook: { name: 'Order system', url: HOOK },
  updateJourneyWebhook: { name: 'Order system' },

  createEventWebhook: { url: HOOK, kinds: ['sent', 'failed', 'clicked'] },
  updateEventWebhook: { kinds: ['failed'] },
  updateDeliverySettings: {
    quiet_hours: { start: '22:00', end: '08:00', fallback_time_zone: 'Europe/Berlin' },
    frequency_caps: [{ channel: 'push', count: 3, window: 1, unit: 'days' }],
  },
  addAdministrator: { email: 'operations@example.com' },

  addEmailDomain: { domain: 'mail.example.com' },
  updateEmailSettings: {
    relay: { host: 'smtp.example.com', port: 587, username: 'shop', password: 'secret' },
    from_address: 'shop@mail.example.com',
    from_name: 'The shop',
  },
  addEmailSuppressions: { addresses: ['you@example.com'], reason: 'manual' },
  updateEmailEventSources: { ses: { topic_arn: 'arn:aws:sns:eu-west-1:123456789012:mail' } },
  unsubscribeEmail: 'List-Unsubscribe=One-Click',
  setEmailPreferences: 'state=unsubscribed',
  updateSmsSettings: {
    kind: 'twilio',
    account_sid: `AC${'0'.repeat(32)}`,
    auth_token: 'secret',
    from: '+15005550006',
  },
  takeTwilioCall: 'From=%2B15005550001&To=%2B15005550006&Body=STOP',

  createApp: { name: 'Shop' },
  updateApp: { site_name: 'The shop', chrome_web_origin: 'https://example.com' },
  createApiKey: { name: 'Back end', permissions: ['users', 'messages'] },
  updateApiKey: { name: 'Back end', permissions: ['messages'] },
}

const byOperation = new Map(Object.entries(examples))

export function withExample(route: Route): Route {
  const example = byOperation.get(route.operation)
  return example === undefined ? route : { ...route, example }
}

export const exampleNames = [...byOperation.keys()]
