import type { Route, RouteAccess } from '../../http/route.ts'
import { route } from '../../http/route.ts'
import type { EmailContext } from '../context.ts'
import { addSuppressions, removeSuppression } from './change.ts'
import { viewSuppressions } from './list.ts'
import {
  AddedAnswer,
  AddressPath,
  AppPath,
  DoneAnswer,
  NewSuppressionsBody,
  SuppressionsAnswer,
  SuppressionsQuery,
} from './schema.ts'

/** The list contains users' addresses. */
const views: RouteAccess = {
  kind: 'app',
  permission: 'messages',
  also: { permission: 'users' },
  appIn: 'path',
  orOrganization: true,
}
const changes: RouteAccess = { kind: 'app', permission: 'apps', appIn: 'path', orOrganization: true }

export function suppressionRoutes(ctx: EmailContext): Route[] {
  const all = { errors: 'apps' as const, tag: 'Email', path: '/apps/:app_id/email/suppressions', params: AppPath }
  return [
    route({
      ...all,
      operation: 'listEmailSuppressions',
      method: 'GET',
      summary: 'View the suppression list',
      description: 'Addresses that the app sends nothing to, newest first.',
      access: views,
      limits: [{ rule: 'read' }],
      query: SuppressionsQuery,
      answers: { 200: SuppressionsAnswer },
      async handle({ app, query }) {
        return { status: 200, body: await viewSuppressions(ctx.db, app.id, query) }
      },
    }),
    route({
      ...all,
      operation: 'addEmailSuppressions',
      method: 'POST',
      summary: 'Add to the suppression list',
      description:
        'One `address`, or up to 1,000 `addresses`. One that is there stays as it is. Subscriptions stay as they are: nothing is sent to them.',
      access: changes,
      limits: [{ rule: 'write' }],
      body: NewSuppressionsBody,
      answers: { 200: AddedAnswer },
      async handle(call) {
        return { status: 200, body: { added: await addSuppressions(ctx, call.app.id, call.body, call) } }
      },
    }),
    route({
      ...all,
      operation: 'removeEmailSuppression',
      method: 'DELETE',
      path: `${all.path}/:address`,
      summary: 'Remove from the suppression list',
      access: changes,
      limits: [{ rule: 'write' }],
      params: AddressPath,
      answers: { 200: DoneAnswer },
      async handle(call) {
        await removeSuppression(ctx, call.app.id, call.params.address.toLowerCase(), call)
        return { status: 200, body: { success: true } }
      },
    }),
  ]
}
