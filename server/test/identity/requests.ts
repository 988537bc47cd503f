// The model's commands as requests to the server.

import { newId } from '../../src/lib/ids.ts'
import type { Answer, Tenant, TestApp } from '../app.ts'
import type { Bindings } from './answers.ts'
import type { Command, Target } from './model.ts'

/** A name that never stood for anything is an id that nobody has. */
const nobody = newId()

export function send(server: TestApp, tenant: Tenant, command: Command, bindings: Bindings): Promise<Answer> {
  const { method, path, body, headers } = requestOf(tenant.id, command, (name) => bindings.get(name) ?? nobody)
  return server.request(path, {
    method,
    ...(body !== undefined && { body }),
    headers: { authorization: `Key ${tenant.key}`, ...headers },
  })
}

type Sent = { method: string; path: string; body?: unknown; headers?: Record<string, string> }

function requestOf(app_id: string, command: Command, idOf: (name: string) => string): Sent {
  const app = `/apps/${app_id}`
  const by = (target: Target) =>
    'user' in target
      ? `${app}/users/by/onesignal_id/${idOf(target.user)}`
      : `${app}/users/by/${encodeURIComponent(target.label)}/${encodeURIComponent(target.value)}`
  const identityOf = (identity: Record<string, string>) =>
    Object.fromEntries(
      Object.entries(identity).map(([label, value]) => [label, value.startsWith('§') ? idOf(value) : value]),
    )
  const draftOf = <Draft extends { id?: string }>(draft: Draft) => ({
    ...draft,
    ...(draft.id && { id: idOf(draft.id) }),
  })
  const player = 'player' in command ? `/players/${idOf(command.player)}` : '/players'

  switch (command.kind) {
    case 'create user': {
      const { identity, properties, subscriptions } = command
      const body = {
        ...(identity && { identity: identityOf(identity) }),
        ...(properties && { properties }),
        ...(subscriptions && { subscriptions: subscriptions.map(draftOf) }),
      }
      return { method: 'POST', path: `${app}/users`, body }
    }
    case 'update aliases':
      return {
        method: 'PATCH',
        path: `${by(command.target)}/identity`,
        body: { identity: identityOf(command.identity) },
      }
    case 'update aliases by subscription':
      return {
        method: 'PATCH',
        path: `${app}/subscriptions/${idOf(command.subscription)}/user/identity`,
        body: { identity: identityOf(command.identity) },
      }
    case 'delete alias':
      return { method: 'DELETE', path: `${by(command.target)}/identity/${encodeURIComponent(command.label)}` }
    case 'create subscription':
      return {
        method: 'POST',
        path: `${by(command.target)}/subscriptions`,
        body: { subscription: draftOf(command.draft) },
      }
    case 'update subscription':
      return {
        method: 'PATCH',
        path: `${app}/subscriptions/${idOf(command.subscription)}`,
        body: { subscription: command.draft },
      }
    case 'update subscription by token':
      return {
        method: 'PATCH',
        path: `${app}/subscriptions_by_token/${command.type}/${encodeURIComponent(command.token)}`,
        body: { subscription: command.draft },
      }
    case 'transfer subscription':
      return {
        method: 'PATCH',
        path: `${app}/subscriptions/${idOf(command.subscription)}/owner`,
        body: { identity: identityOf(command.identity) },
      }
    case 'delete subscription':
      return { method: 'DELETE', path: `${app}/subscriptions/${idOf(command.subscription)}` }
    case 'update user': {
      const { properties, deltas, selected } = command
      return {
        method: 'PATCH',
        path: by(command.target),
        body: { ...(properties && { properties }), ...(deltas && { deltas }) },
        ...(selected !== undefined && { headers: { 'onesignal-subscription-id': idOf(selected) } }),
      }
    }
    case 'delete user':
      return { method: 'DELETE', path: by(command.target) }
    case 'view user':
      return { method: 'GET', path: by(command.target) }
    case 'view identity':
      return { method: 'GET', path: `${by(command.target)}/identity` }
    case 'view identity by subscription':
      return { method: 'GET', path: `${app}/subscriptions/${idOf(command.subscription)}/user/identity` }
    case 'add player': {
      const { device_type, identifier, fields } = command
      return { method: 'POST', path: player, body: { app_id, device_type, identifier, ...fields } }
    }
    case 'edit player': {
      const { identifier, fields } = command
      return { method: 'PUT', path: player, body: { app_id, identifier, ...fields } }
    }
    case 'player session':
      return { method: 'POST', path: `${player}/on_session`, body: { app_id } }
    case 'player purchase':
      return { method: 'POST', path: `${player}/on_purchase`, body: { app_id, purchases: command.purchases } }
    case 'player focus':
      return { method: 'PUT', path: `${player}/on_focus`, body: { app_id, active_time: command.seconds } }
    case 'delete player':
      return { method: 'DELETE', path: `${player}?app_id=${app_id}` }
    case 'view player':
      return { method: 'GET', path: `${player}?app_id=${app_id}` }
    case 'tags by external id':
      return { method: 'PUT', path: `${app}/users/${command.externalId}`, body: { tags: command.tags } }
  }
}
