import type { Call, Route, RouteAccess } from '../http/route.ts'
import { route } from '../http/route.ts'
import { sendMessage } from './accept/send-message.ts'
import { cancelMessage } from './cancel.ts'
import type { MessagesContext } from './context.ts'
import { listMessages } from './list.ts'
import {
  AppQuery,
  CanceledAnswer,
  CreatedAnswer,
  CreateMessageBody,
  ListQuery,
  MessagePath,
  MessagesAnswer,
  ViewedAnswer,
  ViewQuery,
} from './schema.ts'
import { parseMessageId, viewMessage } from './view.ts'

const access = (appIn: 'query' | 'body'): RouteAccess => ({ kind: 'app', permission: 'messages', appIn })

const isLookback = ({ query }: Pick<Call, 'query'>) => Number(query.offset) > 0 || query.time_offset !== undefined

/** The body of an email, including its inline images, is part of the request. */
const MAX_BODY_BYTES = 5 * 1_048_576

export function messageRoutes(ctx: MessagesContext): Route[] {
  const common = { errors: 'messages' as const, tag: 'Messages' }
  return [
    route({
      ...common,
      operation: 'createNotification',
      method: 'POST',
      path: '/notifications',
      summary: 'Create message',
      description:
        'Recipients are named in exactly one way. Fields that are not known are ignored, and named in `warnings`. With an `idempotency_key` a retry gets the first answer, with the header `Idempotent-Replayed: true`, and nothing is sent twice.',
      access: access('body'),
      limits: [{ rule: 'messages' }],
      maxBodyBytes: MAX_BODY_BYTES,
      body: CreateMessageBody,
      answers: { 200: CreatedAnswer },
      async handle({ app, body }) {
        const { answer, isReplay } = await sendMessage(ctx, app.id, body)
        return { status: 200, body: answer, ...(isReplay && { headers: { 'idempotent-replayed': 'true' } }) }
      },
    }),
    route({
      ...common,
      operation: 'getNotifications',
      method: 'GET',
      path: '/notifications',
      summary: 'View messages',
      description:
        'Newest first; with `time_offset` in the order of `send_after`. Messages that journeys send are not among them. Where a message names more than 100 recipients, the list leaves their names out.',
      access: access('query'),
      limits: [
        { rule: 'view', when: (call) => !isLookback(call) },
        { rule: 'lookback', counter: 'lookback', when: isLookback },
      ],
      query: ListQuery,
      answers: { 200: MessagesAnswer },
      async handle({ app, query }) {
        return { status: 200, body: await listMessages(ctx.db, app.id, query) }
      },
    }),
    route({
      ...common,
      operation: 'getNotification',
      method: 'GET',
      path: '/notifications/:message_id',
      summary: 'View message',
      access: access('query'),
      limits: [{ rule: 'view' }],
      params: MessagePath,
      description: 'With `outcome_names`, what people did because of it is answered too, in `outcomes`.',
      query: ViewQuery,
      answers: { 200: ViewedAnswer },
      async handle({ app, params, query }) {
        return { status: 200, body: await viewMessage(ctx, app.id, parseMessageId(params.message_id), query) }
      },
    }),
    route({
      ...common,
      operation: 'cancelNotification',
      method: 'DELETE',
      path: '/notifications/:message_id',
      summary: 'Cancel message',
      description:
        'Stops a scheduled message, or one that is being sent: nothing of it begins to be sent after the answer. The message stays readable. Fails with 400 when it has been sent to everybody.',
      access: access('query'),
      limits: [{ rule: 'messages' }],
      params: MessagePath,
      query: AppQuery,
      answers: { 200: CanceledAnswer },
      async handle({ app, params }) {
        await cancelMessage(ctx, app.id, parseMessageId(params.message_id))
        return { status: 200, body: { success: true } }
      },
    }),
  ]
}
