import type { Route, RouteAccess, RouteLimit } from '../../http/route.ts'
import { route } from '../../http/route.ts'
import { isUuid } from '../../lib/ids.ts'
import type { JourneysContext } from '../context.ts'
import { AppPath, DeletedAnswer } from '../schema.ts'
import { changeWebhook, createWebhook, removeWebhook } from './change.ts'
import { journeyReceivers } from './receivers.ts'
import {
  NewWebhookAnswer,
  NewWebhookBody,
  TriedAnswer,
  WebhookAnswer,
  WebhookBody,
  WebhookPath,
  WebhooksAnswer,
} from './schema.ts'
import { findWebhooks } from './store.ts'
import { type JourneyWebhookId, journeyWebhookNotFound, webhookObject } from './webhook.ts'

const views: RouteAccess = { kind: 'app', permission: 'journeys:view', appIn: 'path' }
const edits = { kind: 'app', permission: 'journeys:edit', appIn: 'path' } as const satisfies RouteAccess
/** Requests to the address tell who users are and what their tags say. */
const setsAddress: RouteAccess = { ...edits, also: { permission: 'users' } }
const reads: RouteLimit[] = [{ rule: 'read' }]
const writes: RouteLimit[] = [{ rule: 'write' }]

/** In a path: what is no id names nothing. */
function readId({ journey_webhook_id: id }: { journey_webhook_id: string }): JourneyWebhookId {
  if (!isUuid(id)) throw journeyWebhookNotFound()
  return id.toLowerCase()
}

export function journeyWebhookRoutes(ctx: JourneysContext): Route[] {
  const all = { errors: 'journeys' as const, tag: 'Journey webhooks', path: '/apps/:app_id/journey_webhooks' }
  const one = { ...all, path: `${all.path}/:journey_webhook_id`, params: WebhookPath }
  return [
    route({
      ...all,
      operation: 'listJourneyWebhooks',
      method: 'GET',
      summary: 'View journey webhooks',
      access: views,
      limits: reads,
      params: AppPath,
      answers: { 200: WebhooksAnswer },
      async handle({ app }) {
        const webhooks = await findWebhooks(ctx.db, app.id)
        return { status: 200, body: { journey_webhooks: webhooks.map(webhookObject) } }
      },
    }),
    route({
      ...all,
      operation: 'createJourneyWebhook',
      method: 'POST',
      summary: 'Create a journey webhook',
      description: 'For the `webhook_id` of send_webhook nodes. An app has at most 100. The secret is shown this once.',
      access: setsAddress,
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
      operation: 'viewJourneyWebhook',
      method: 'GET',
      summary: 'View a journey webhook',
      access: views,
      limits: reads,
      answers: { 200: WebhookAnswer },
      async handle({ app, params }) {
        return { status: 200, body: webhookObject(await journeyReceivers.get(ctx, app.id, readId(params))) }
      },
    }),
    route({
      ...one,
      operation: 'updateJourneyWebhook',
      method: 'PATCH',
      summary: 'Update a journey webhook',
      description: 'What is left out stays as it is. Journeys that are under way use the new address at once.',
      access: setsAddress,
      limits: writes,
      body: WebhookBody,
      answers: { 200: WebhookAnswer },
      async handle(call) {
        return {
          status: 200,
          body: webhookObject(await changeWebhook(ctx, call.app.id, readId(call.params), call.body, call)),
        }
      },
    }),
    route({
      ...one,
      operation: 'deleteJourneyWebhook',
      method: 'DELETE',
      summary: 'Delete a journey webhook',
      description: 'Not while an active journey uses it: 400.',
      access: edits,
      limits: writes,
      answers: { 200: DeletedAnswer },
      async handle(call) {
        await removeWebhook(ctx, call.app.id, readId(call.params), call)
        return { status: 200, body: { success: true } }
      },
    }),
    route({
      ...one,
      operation: 'rotateJourneyWebhookSecret',
      method: 'POST',
      path: `${one.path}/rotate`,
      summary: 'Give a journey webhook a new secret',
      description: 'For a day requests carry a signature by the old one too. The new one is shown this once.',
      access: edits,
      limits: writes,
      answers: { 200: NewWebhookAnswer },
      async handle(call) {
        const { webhook, secret } = await journeyReceivers.rotateSecret(ctx, call.app.id, readId(call.params), call)
        return { status: 200, body: { ...webhookObject(webhook), secret } }
      },
    }),
    route({
      ...one,
      operation: 'testJourneyWebhook',
      method: 'POST',
      path: `${one.path}/test`,
      summary: 'Try a journey webhook',
      description: 'Sends one signed request of the type `test`, once, and answers what came of it.',
      access: edits,
      limits: reads,
      answers: { 200: TriedAnswer },
      async handle({ app, params }) {
        return { status: 200, body: await journeyReceivers.sendTest(ctx, app.id, readId(params)) }
      },
    }),
  ]
}
