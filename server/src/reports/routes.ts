import type { Route, RouteAccess, RouteLimit } from '../http/route.ts'
import { route } from '../http/route.ts'
import type { ReportsContext } from './context.ts'
import { listDeliveries } from './deliveries.ts'
import { explainMessage } from './explain.ts'
import {
  ClosedAnswer,
  DeliveriesAnswer,
  DeliveriesQuery,
  ExplainMessageAnswer,
  ExplainMessageQuery,
  MessagePath,
  ResentAnswer,
  UnknownsAnswer,
  UnknownsBody,
  UnknownsQuery,
} from './schema.ts'
import { closeUnknowns, resendUnknowns, viewUnknowns } from './unknowns.ts'

const access = { kind: 'app', permission: 'messages', appIn: 'path' } as const satisfies RouteAccess
const pages: RouteLimit[] = [
  { rule: 'read', when: ({ query }) => query.cursor === undefined },
  { rule: 'lookback', counter: 'lookback', when: ({ query }) => query.cursor !== undefined },
]

export function reportRoutes(ctx: ReportsContext): Route[] {
  const common = { errors: 'messages' as const, tag: 'Reports', access, params: MessagePath }
  return [
    route({
      ...common,
      operation: 'explainMessage',
      method: 'GET',
      path: '/apps/:app_id/messages/:message_id/explain',
      summary: 'Explain why a user got a message, or did not',
      description:
        'Name the user by `external_id`, `onesignal_id` or `subscription_id`. For each subscription: what was decided and why, or why nothing was.',
      access: { ...access, also: { permission: 'users' } },
      limits: [{ rule: 'read' }],
      query: ExplainMessageQuery,
      answers: { 200: ExplainMessageAnswer },
      async handle({ app, params, query }) {
        return { status: 200, body: await explainMessage(ctx, app.id, params.message_id, query) }
      },
    }),
    route({
      ...common,
      operation: 'viewDeliveries',
      method: 'GET',
      path: '/apps/:app_id/messages/:message_id/deliveries',
      summary: 'View the deliveries of a message',
      description:
        'One for each recipient, in the order of their ids. With `state`, a page may hold fewer than `limit`; the last one has no `next_cursor`.',
      limits: pages,
      query: DeliveriesQuery,
      answers: { 200: DeliveriesAnswer },
      async handle({ app, params, query }) {
        return { status: 200, body: await listDeliveries(ctx.db, app.id, params.message_id, query) }
      },
    }),
    route({
      ...common,
      operation: 'viewUnknownDeliveries',
      method: 'GET',
      path: '/apps/:app_id/messages/:message_id/unknowns',
      summary: 'View deliveries of which nobody knows whether they arrived',
      description:
        'They were under way when a connection or a server broke off, and are never sent again by themselves.',
      limits: pages,
      query: UnknownsQuery,
      answers: { 200: UnknownsAnswer },
      async handle({ app, params, query }) {
        return { status: 200, body: await viewUnknowns(ctx, app.id, params.message_id, query) }
      },
    }),
    route({
      ...common,
      operation: 'resendUnknownDeliveries',
      method: 'POST',
      path: '/apps/:app_id/messages/:message_id/unknowns/resend',
      summary: 'Send unknown deliveries again',
      description: 'At the risk that some arrive twice. Nothing of a canceled message is sent.',
      limits: [{ rule: 'write' }],
      body: UnknownsBody,
      mayOmitBody: true,
      answers: { 200: ResentAnswer },
      async handle(call) {
        const { app, params, body } = call
        return { status: 200, body: { resent: await resendUnknowns(ctx, app.id, params.message_id, body, call) } }
      },
    }),
    route({
      ...common,
      operation: 'closeUnknownDeliveries',
      method: 'POST',
      path: '/apps/:app_id/messages/:message_id/unknowns/close',
      summary: 'Close unknown deliveries',
      description: 'As failed, for the reason `closed`.',
      limits: [{ rule: 'write' }],
      body: UnknownsBody,
      mayOmitBody: true,
      answers: { 200: ClosedAnswer },
      async handle(call) {
        const { app, params, body } = call
        return { status: 200, body: { closed: await closeUnknowns(ctx, app.id, params.message_id, body, call) } }
      },
    }),
  ]
}
