import type { Call, Route, RouteAccess, RouteLimit } from '../http/route.ts'
import { route } from '../http/route.ts'
import { createInAppMessage, deleteInAppMessage, updateInAppMessage } from './change.ts'
import type { InAppContext } from './context.ts'
import { summaryObject } from './message.ts'
import {
  AppPath,
  CreateInAppBody,
  DeletedAnswer,
  ListAnswer,
  ListQuery,
  MessageAnswer,
  MessagePath,
  UpdateInAppBody,
} from './schema.ts'
import { listMessages } from './store.ts'
import { viewInAppMessage } from './view.ts'

const access: RouteAccess = { kind: 'app', permission: 'messages', appIn: 'path' }
const reads: RouteLimit[] = [{ rule: 'read' }]
const writes: RouteLimit[] = [{ rule: 'write' }]
const isLookback = ({ query }: Pick<Call, 'query'>) => Number(query.offset) > 0

/** Routes for the authors of in-app messages. Routes for devices are in sdk-routes.ts. */
export function inAppRoutes(ctx: InAppContext): Route[] {
  const common = { errors: 'messages' as const, tag: 'In-app messages', access }
  return [
    route({
      ...common,
      operation: 'listInAppMessages',
      method: 'GET',
      path: '/apps/:app_id/in_app_messages',
      summary: 'View in-app messages',
      description: 'Summaries, oldest first.',
      limits: [
        { rule: 'read', when: (call) => !isLookback(call) },
        { rule: 'lookback', counter: 'lookback', when: isLookback },
      ],
      params: AppPath,
      query: ListQuery,
      answers: { 200: ListAnswer },
      async handle({ app, query: { limit, offset } }) {
        const { total, messages } = await listMessages(ctx.db, app.id, limit, offset)
        const body = { in_app_messages: messages.map(summaryObject), total_count: total, offset, limit }
        return { status: 200, body }
      },
    }),
    route({
      ...common,
      operation: 'createInAppMessage',
      method: 'POST',
      path: '/apps/:app_id/in_app_messages',
      summary: 'Create in-app message',
      limits: writes,
      params: AppPath,
      body: CreateInAppBody,
      answers: { 201: MessageAnswer },
      async handle(call) {
        const id = await createInAppMessage(ctx, call.app.id, call.body, call)
        return { status: 201, body: await viewInAppMessage(ctx, call.app.id, id) }
      },
    }),
    route({
      ...common,
      operation: 'viewInAppMessage',
      method: 'GET',
      path: '/apps/:app_id/in_app_messages/:in_app_message_id',
      summary: 'View in-app message',
      description: 'With what was shown and clicked so far.',
      limits: reads,
      params: MessagePath,
      answers: { 200: MessageAnswer },
      async handle({ app, params }) {
        return { status: 200, body: await viewInAppMessage(ctx, app.id, params.in_app_message_id) }
      },
    }),
    route({
      ...common,
      operation: 'updateInAppMessage',
      method: 'PATCH',
      path: '/apps/:app_id/in_app_messages/:in_app_message_id',
      summary: 'Update in-app message',
      description: 'Fields that are given replace what is there, null goes back to the default, the others stay.',
      limits: writes,
      params: MessagePath,
      body: UpdateInAppBody,
      answers: { 200: MessageAnswer },
      async handle(call) {
        const { app, params, body } = call
        await updateInAppMessage(ctx, app.id, params.in_app_message_id, body, call)
        return { status: 200, body: await viewInAppMessage(ctx, app.id, params.in_app_message_id) }
      },
    }),
    route({
      ...common,
      operation: 'deleteInAppMessage',
      method: 'DELETE',
      path: '/apps/:app_id/in_app_messages/:in_app_message_id',
      summary: 'Delete in-app message',
      description:
        'For good, with its numbers. To keep them, archive it instead. Not while an active journey uses it: 400.',
      limits: writes,
      params: MessagePath,
      answers: { 200: DeletedAnswer },
      async handle(call) {
        await deleteInAppMessage(ctx, call.app.id, call.params.in_app_message_id, call)
        return { status: 200, body: { success: true } }
      },
    }),
  ]
}
