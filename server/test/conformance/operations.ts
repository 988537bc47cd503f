// Every operation of users, aliases, subscriptions, events and players, as a request that is well-formed, for tests that hold for
// all of them. versioning.test.ts checks the list against the description that the server gives of itself.

import type { Request } from '../app.ts'
import { NOBODY } from '../users.ts'

export type Operation = {
  name: string
  /** In the words of the description: `/apps/{app_id}/users`. */
  shape: string
  method: string
  path: (appId: string) => string
  body?: (appId: string) => Record<string, unknown>
  family: 'users' | 'legacy'
  /** May an SDK call it without a key? */
  keyless: boolean
}

const user = '/apps/{app_id}/users/by/{alias_label}/{alias_id}'
const subscription = '/apps/{app_id}/subscriptions/{subscription_id}'
const player = '/players/{player_id}'

const fill = (shape: string, appId: string) =>
  shape
    .replace('{app_id}', appId)
    .replace('{alias_label}', 'onesignal_id')
    .replace('{alias_id}', NOBODY)
    .replace('{alias_label_to_delete}', 'crm')
    .replace('{subscription_id}', NOBODY)
    .replace('{player_id}', NOBODY)
    .replace('{token_type}', 'Email')
    .replace('{token}', 'nobody@example.com')
    .replace('{external_user_id}', 'nobody')

const ofUsers = (name: string, method: string, shape: string, keyless: boolean, body?: object): Operation => ({
  name,
  shape,
  method,
  path: (appId) => fill(shape, appId),
  ...(body && { body: () => ({ ...body }) }),
  family: 'users',
  keyless,
})

/** The app stands in the body, or in the query where there is no body. */
const ofPlayers = (name: string, method: string, shape: string, body?: object): Operation => ({
  name,
  shape,
  method,
  path: (appId) => `${fill(shape, appId)}${body ? '' : `?app_id=${appId}`}`,
  ...(body && { body: (appId) => ({ app_id: appId, ...body }) }),
  family: 'legacy',
  keyless: false,
})

const identity = { identity: { crm: 'x' } }
const change = { subscription: { sdk: '1' } }
const events = { events: [{ name: 'bell rung', onesignal_id: NOBODY }] }
const email = { type: 'Email', token: 'somebody@example.com' }

export const operations: Operation[] = [
  ofUsers('Create user', 'POST', '/apps/{app_id}/users', true, { identity: { external_id: 'somebody' } }),
  ofUsers('View user', 'GET', user, true),
  ofUsers('Update user', 'PATCH', user, true, { properties: { language: 'en' } }),
  ofUsers('Delete user', 'DELETE', user, false),
  ofUsers('View user identity', 'GET', `${user}/identity`, true),
  ofUsers('Create or update alias', 'PATCH', `${user}/identity`, true, identity),
  ofUsers('Delete alias', 'DELETE', `${user}/identity/{alias_label_to_delete}`, true),
  ofUsers('View user identity by subscription', 'GET', `${subscription}/user/identity`, true),
  ofUsers('Create or update alias by subscription', 'PATCH', `${subscription}/user/identity`, true, identity),
  ofUsers('Create subscription', 'POST', `${user}/subscriptions`, true, { subscription: email }),
  ofUsers('Update subscription', 'PATCH', subscription, true, change),
  ofUsers(
    'Update subscription by token',
    'PATCH',
    '/apps/{app_id}/subscriptions_by_token/{token_type}/{token}',
    false,
    change,
  ),
  ofUsers('Delete subscription', 'DELETE', subscription, true),
  ofUsers('Transfer subscription', 'PATCH', `${subscription}/owner`, true, identity),
  ofUsers('Create custom events', 'POST', '/apps/{app_id}/custom_events', true, events),
  ofUsers('Create custom events (older SDKs)', 'POST', '/apps/{app_id}/integrations/custom_events', true, events),
  ofUsers('View custom events of a user', 'GET', `${user}/custom_events`, false),
  ofPlayers('Add a player', 'POST', '/players', { device_type: 1 }),
  ofPlayers('View players', 'GET', '/players'),
  ofPlayers('View player', 'GET', player),
  ofPlayers('Edit player', 'PUT', player, { game_version: '1' }),
  ofPlayers('Delete player', 'DELETE', player),
  ofPlayers('Report a new session', 'POST', `${player}/on_session`, {}),
  ofPlayers('Report purchases', 'POST', `${player}/on_purchase`, {
    purchases: [{ sku: 'A', iso: 'USD', amount: '1', count: 1 }],
  }),
  ofPlayers('Report time in the foreground', 'PUT', `${player}/on_focus`, { active_time: 1 }),
  ofPlayers('Report time in the foreground (POST)', 'POST', `${player}/on_focus`, { active_time: 1 }),
  {
    ...ofUsers('Change tags by external user id', 'PUT', '/apps/{app_id}/users/{external_user_id}', false, {
      tags: { a: '1' },
    }),
    family: 'legacy',
  },
]

export const requestOf = ({ method, body }: Operation, appId: string, headers: Record<string, string>): Request => ({
  method,
  ...(body && { body: body(appId) }),
  headers,
})
