// Legacy: Create user and Create subscription replace these. Old clients still call them.

import Type from 'typebox'
import type { Call, Route, RouteAccess, RouteLimit } from '../../http/route.ts'
import { route } from '../../http/route.ts'
import { readUserRef } from '../aliases/identity.ts'
import type { UsersContext } from '../context.ts'
import { sumPlayerCounts } from '../count-store.ts'
import { limitSubjectOfToken } from '../limit-subjects.ts'
import { loadReferencedUsers } from '../load-store.ts'
import { listSubscriptions } from '../subscriptions/store.ts'
import { typeOfDeviceNumber } from '../subscriptions/subscription.ts'
import {
  addPlayer,
  addPlayerPurchases,
  addPlaytime,
  changeTagsByExternalId,
  editPlayer,
  playerNotFound,
  playerObject,
  readPlayerId,
  removePlayer,
  startSession,
} from './players.ts'
import {
  AddPlayerBody,
  AppQuery,
  EditPlayerBody,
  FocusBody,
  OptionalAppQuery,
  PlayerAdded,
  PlayerObject,
  PlayerPath,
  PlayersAnswer,
  PlayersQuery,
  PurchaseBody,
  Success,
  TagsBody,
} from './schema.ts'

type PlayerAppAccess = Extract<RouteAccess, { kind: 'app' }>

const access = (
  appIn: PlayerAppAccess['appIn'],
  more: Pick<PlayerAppAccess, 'foreign' | 'mayOmitApp'> = {},
): RouteAccess => ({
  kind: 'app',
  permission: 'users',
  appIn,
  ...more,
})
const mayOmitApp = true as const

const done = { status: 200, body: { success: true } }

export function playerRoutes(ctx: UsersContext): Route[] {
  const { change, newId } = ctx
  const writes = (subjects: (call: Call) => string[] | Promise<string[]>): RouteLimit[] => [
    { rule: 'users.write' },
    { rule: 'users.one', subjects },
  ]
  const writesPlayer = writes(({ params }) => [(params.player_id ?? '').toLowerCase()])
  const common = { errors: 'legacy' as const, tag: 'Players (legacy)' }

  const focus = (method: 'POST' | 'PUT') =>
    route({
      ...common,
      operation: method === 'PUT' ? 'playerOnFocus' : 'playerOnFocusPost',
      method,
      path: '/players/:player_id/on_focus',
      summary: 'Report time in the foreground',
      access: access('body', { mayOmitApp }),
      limits: writesPlayer,
      params: PlayerPath,
      body: FocusBody,
      answers: { 200: Success },
      async handle({ app, params, body }) {
        await addPlaytime(change, app.id, readPlayerId(params.player_id), body.active_time)
        return done
      },
    })

  return [
    route({
      ...common,
      operation: 'addPlayer',
      method: 'POST',
      path: '/players',
      summary: 'Add a player',
      description: 'Registers a subscription. An identifier that is known answers the id it has.',
      access: access('body', { foreign: 'bad-key' }),
      limits: writes(({ body }) => {
        const { identifier, device_type } = (body ?? {}) as { identifier?: unknown; device_type?: unknown }
        const type = typeof device_type === 'number' ? typeOfDeviceNumber(device_type) : undefined
        return typeof identifier === 'string' && type ? [limitSubjectOfToken(type, identifier)] : []
      }),
      body: AddPlayerBody,
      answers: { 200: PlayerAdded },
      async handle({ app, body }) {
        return { status: 200, body: { success: true, id: await addPlayer(change, newId, app.id, body) } }
      },
    }),
    route({
      ...common,
      operation: 'listPlayers',
      method: 'GET',
      path: '/players',
      summary: 'View players',
      access: access('query'),
      limits: [
        { rule: 'view', when: ({ query }) => !(Number(query.offset) > 0) },
        { rule: 'lookback', counter: 'lookback', when: ({ query }) => Number(query.offset) > 0 },
      ],
      query: PlayersQuery,
      answers: { 200: PlayersAnswer },
      async handle({ app, query: { limit, offset } }) {
        const counts = await sumPlayerCounts(ctx.db, [app.id])
        const page = await listSubscriptions(ctx.db, app.id, limit, offset)
        const refs = page.map((id) => ({ subscriptionId: id }))
        const owners = await loadReferencedUsers(ctx.db, app.id, refs, { subscriptions: true, purchases: false })
        const players = page.flatMap((id, i) => {
          const subscription = owners[i]?.subscriptions.get(id)
          return owners[i] && subscription ? [playerObject(owners[i], subscription)] : []
        })
        return { status: 200, body: { total_count: counts.get(app.id)?.players ?? 0, offset, limit, players } }
      },
    }),
    route({
      ...common,
      operation: 'viewPlayer',
      method: 'GET',
      path: '/players/:player_id',
      summary: 'View player',
      access: access('query', { mayOmitApp }),
      limits: [{ rule: 'view' }],
      params: PlayerPath,
      query: OptionalAppQuery,
      answers: { 200: PlayerObject },
      async handle({ app, params }) {
        const id = readPlayerId(params.player_id)
        const user = await ctx.reader.user(app.id, { subscriptionId: id })
        const subscription = user?.subscriptions.get(id)
        if (!user || !subscription) throw playerNotFound()
        return { status: 200, body: playerObject(user, subscription) }
      },
    }),
    route({
      ...common,
      operation: 'editPlayer',
      method: 'PUT',
      path: '/players/:player_id',
      summary: 'Edit player',
      access: access('body', { mayOmitApp }),
      limits: writesPlayer,
      params: PlayerPath,
      body: EditPlayerBody,
      answers: { 200: PlayerAdded },
      async handle({ app, params, body }) {
        const id = readPlayerId(params.player_id)
        await editPlayer(change, newId, app.id, id, body)
        return { status: 200, body: { success: true, id } }
      },
    }),
    route({
      ...common,
      operation: 'deletePlayer',
      method: 'DELETE',
      path: '/players/:player_id',
      summary: 'Delete player',
      access: access('query'),
      limits: writesPlayer,
      params: PlayerPath,
      query: AppQuery,
      answers: { 200: Success },
      async handle({ app, params }) {
        await removePlayer(change, app.id, readPlayerId(params.player_id))
        return done
      },
    }),
    route({
      ...common,
      operation: 'playerOnSession',
      method: 'POST',
      path: '/players/:player_id/on_session',
      summary: 'Report a new session',
      access: access('body', { mayOmitApp }),
      limits: writesPlayer,
      params: PlayerPath,
      body: EditPlayerBody,
      mayOmitBody: true,
      answers: { 200: Success },
      async handle({ app, params, body }) {
        await startSession(change, app.id, readPlayerId(params.player_id), body)
        return done
      },
    }),
    route({
      ...common,
      operation: 'playerOnPurchase',
      method: 'POST',
      path: '/players/:player_id/on_purchase',
      summary: 'Report purchases',
      access: access('body', { mayOmitApp }),
      limits: writesPlayer,
      params: PlayerPath,
      body: PurchaseBody,
      answers: { 200: Success },
      async handle({ app, params, body }) {
        await addPlayerPurchases(change, app.id, readPlayerId(params.player_id), body.purchases)
        return done
      },
    }),
    focus('PUT'),
    focus('POST'),
    route({
      ...common,
      operation: 'changeTagsByExternalId',
      method: 'PUT',
      path: '/apps/:app_id/users/:external_user_id',
      summary: 'Change tags by external user id',
      access: access('path'),
      limits: writes(({ app, params }) =>
        ctx.findSubjects(app.id, readUserRef('external_id', params.external_user_id ?? '')),
      ) as RouteLimit[],
      params: Type.Object({ app_id: Type.String(), external_user_id: Type.String() }),
      body: TagsBody,
      answers: { 200: Success },
      async handle({ app, params, body }) {
        await changeTagsByExternalId(change, app.id, params.external_user_id, body.tags)
        return done
      },
    }),
  ]
}
