import Type from 'typebox'
import type { Call, Route } from '../http/route.ts'
import { route } from '../http/route.ts'
import { forbidden } from '../lib/errors.ts'
import type { OrganizationId } from '../lib/ids.ts'
import { actorOf } from './audit/actor.ts'
import { createConfiguredApp, updateApp } from './configure.ts'
import type { AppsContext } from './context.ts'
import { AppAnswer, AppBody, AppPath, AppQuery, NewAppBody } from './schema.ts'
import { listApps, viewApp } from './view.ts'

const common = { errors: 'apps' as const, tag: 'Apps', access: { kind: 'organization' as const } }

/** The route's access admits only organization keys; the type does not express that. */
function organizationOf({ caller }: Pick<Call, 'caller'>): OrganizationId {
  if (caller.kind !== 'organization') throw forbidden()
  return caller.organizationId
}

export const appRoutes = (ctx: AppsContext): Route[] => [
  route({
    ...common,
    operation: 'listApps',
    method: 'GET',
    path: '/apps',
    summary: 'View apps',
    description: 'All apps of the organization, oldest first.',
    limits: [],
    answers: { 200: Type.Array(AppAnswer) },
    async handle(call) {
      return { status: 200, body: await listApps(ctx, organizationOf(call)) }
    },
  }),
  route({
    ...common,
    operation: 'createApp',
    method: 'POST',
    path: '/apps',
    summary: 'Create an app',
    description: 'Takes what Update an app takes. An API key for it is made with Create API key.',
    limits: [],
    body: NewAppBody,
    answers: { 200: AppAnswer },
    async handle(call) {
      const appId = await createConfiguredApp(ctx, organizationOf(call), call.body, actorOf(call))
      return { status: 200, body: await viewApp(ctx, appId) }
    },
  }),
  route({
    ...common,
    operation: 'viewApp',
    method: 'GET',
    path: '/apps/:app_id',
    summary: 'View an app',
    limits: [{ rule: 'read' }],
    params: AppPath,
    query: AppQuery,
    answers: { 200: AppAnswer },
    async handle({ app, query }) {
      return { status: 200, body: await viewApp(ctx, app.id, query.view === 'config') }
    },
  }),
  route({
    ...common,
    operation: 'updateApp',
    method: 'PUT',
    path: '/apps/:app_id',
    summary: 'Update an app',
    description:
      'Changes the name, the push platforms, and how SDKs without a key are let in. What is left out stays as it is, "" clears. Credentials are opened and checked before anything is stored, and never answered. iOS push takes either a p8 (with key id, team id and bundle id) or a p12. Email and SMS cannot be configured here.',
    limits: [{ rule: 'write' }],
    params: AppPath,
    query: AppQuery,
    body: AppBody,
    answers: { 200: AppAnswer },
    async handle(call) {
      const { app, query, body } = call
      await updateApp(ctx, organizationOf(call), app.id, body, actorOf(call))
      return { status: 200, body: await viewApp(ctx, app.id, query.view === 'config') }
    },
  }),
]
