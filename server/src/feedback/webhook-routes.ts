import type { Route, RouteAccess, RouteLimit } from '../http/route.ts'
import { route } from '../http/route.ts'
import {
  changeWebhook,
  createWebhook,
  getWebhook,
  removeWebhook,
  rotateWebhookSecret,
  testWebhook,
} from './change-webhooks.ts'
import type { FeedbackContext } from './context.ts'
import { webhookObject } from './webhook.ts'
import {
  AppPath,
  DeletedAnswer,
  NewWebhookAnswer,
  NewWebhookBody,
  TriedAnswer,
  WebhookAnswer,
  WebhookBody,
  WebhookPath,
  WebhooksAnswer,
} from './webhook-schema.ts'
import { findWebhooks } from './webhook-store.ts'

const access: RouteAccess = { kind: 'app', permission: 'apps', appIn: 'path', orOrganization: true }
const reads: RouteLimit[] = [{ rule: 'read' }]
const writes: RouteLimit[] = [{ rule: 'write' }]

export function webhookRoutes(ctx: FeedbackContext): Route[] {
  const all = { errors: 'apps' as const, tag: 'Event webhooks', access, path: '/apps/:app_id/event_webhooks' }
  const one = { ...all, path: `${all.path}/:webhook_id`, params: WebhookPath }
  return [
    route({
      ...all,
      operation: 'listEventWebhooks',
      method: 'GET',
      summary: 'View event webhooks',
      limits: reads,
      params: AppPath,
      answers: { 200: WebhooksAnswer },
      async handle({ app }) {
        const webhooks = await findWebhooks(ctx.db, app.id)
        return { status: 200, body: { event_webhooks: webhooks.map(webhookObject) } }
      },
    }),
    route({
      ...all,
      operation: 'createEventWebhook',
      method: 'POST',
      summary: 'Create an event webhook',
      description:
        'It receives what happens from now on, in signed requests of up to 100 events. An app has at most 20. The secret is shown only once.',
      limits: writes,
      params: AppPath,
      body: NewWebhookBody,
      answers: { 201: NewWebhookAnswer },
      async handle(call) {
        const { webhook, secret } = await createWebhook(ctx, call.app.id, call.body, call)
        return { status: 201, body: { ...webhookObject(webhook), secret } }
      },
    }),
    route({
      ...one,
      operation: 'viewEventWebhook',
      method: 'GET',
      summary: 'View an event webhook',
      limits: reads,
      answers: { 200: WebhookAnswer },
      async handle({ app, params }) {
        return { status: 200, body: webhookObject(await getWebhook(ctx, app.id, params.webhook_id)) }
      },
    }),
    route({
      ...one,
      operation: 'updateEventWebhook',
      method: 'PATCH',
      summary: 'Update an event webhook',
      description: 'What is left out stays as it is.',
      limits: writes,
      body: WebhookBody,
      answers: { 200: WebhookAnswer },
      async handle(call) {
        const webhook = await changeWebhook(ctx, call.app.id, call.params.webhook_id, call.body, call)
        return { status: 200, body: webhookObject(webhook) }
      },
    }),
    route({
      ...one,
      operation: 'deleteEventWebhook',
      method: 'DELETE',
      summary: 'Delete an event webhook',
      description: 'What it was not told yet goes with it.',
      limits: writes,
      answers: { 200: DeletedAnswer },
      async handle(call) {
        await removeWebhook(ctx, call.app.id, call.params.webhook_id, call)
        return { status: 200, body: { success: true } }
      },
    }),
    route({
      ...one,
      operation: 'rotateEventWebhookSecret',
      method: 'POST',
      path: `${one.path}/rotate`,
      summary: 'Give an event webhook a new secret',
      description: 'For a day requests carry a signature by the old one too. The new one is shown this once.',
      limits: writes,
      answers: { 200: NewWebhookAnswer },
      async handle(call) {
        const { webhook, secret } = await rotateWebhookSecret(ctx, call.app.id, call.params.webhook_id, call)
        return { status: 200, body: { ...webhookObject(webhook), secret } }
      },
    }),
    route({
      ...one,
      operation: 'testEventWebhook',
      method: 'POST',
      path: `${one.path}/test`,
      summary: 'Try an event webhook',
      description: 'Sends one signed request of the type `test`, once, and answers what came of it.',
      limits: reads,
      answers: { 200: TriedAnswer },
      async handle({ app, params }) {
        return { status: 200, body: await testWebhook(ctx, app.id, params.webhook_id) }
      },
    }),
  ]
}
