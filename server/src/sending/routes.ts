import type { Route, RouteAccess, RouteLimit } from '../http/route.ts'
import { route } from '../http/route.ts'
import { addAdministrator, removeAdministrator } from './administrators.ts'
import { changeSettings } from './change-settings.ts'
import type { SendingContext } from './context.ts'
import { enableSending, pauseSending, resumeSending } from './control.ts'
import { findAdministrators, listNotices } from './notice-store.ts'
import { readSending } from './read.ts'
import {
  AdministratorAnswer,
  AdministratorBody,
  AdministratorPath,
  AdministratorsAnswer,
  AppPath,
  DeliverySettingsAnswer,
  DeliverySettingsBody,
  DoneAnswer,
  NoticesAnswer,
  NoticesQuery,
  SendingAnswer,
  settingsObject,
} from './schema.ts'
import { administratorObject, noticeObject, viewSending } from './view.ts'

const views: RouteAccess = { kind: 'app', permission: 'messages', appIn: 'path', orOrganization: true }
const changes: RouteAccess = { kind: 'app', permission: 'apps', appIn: 'path', orOrganization: true }
const organization: RouteAccess = { kind: 'organization' }
const reads: RouteLimit[] = [{ rule: 'read' }]
const writes: RouteLimit[] = [{ rule: 'write' }]

export function sendingRoutes(ctx: SendingContext): Route[] {
  const common = { errors: 'apps' as const, tag: 'Sending', params: AppPath }
  const control = (
    verb: 'pause' | 'resume' | 'enable',
    summary: string,
    description: string,
    act: typeof pauseSending,
  ): Route =>
    route({
      ...common,
      operation: `${verb}Sending`,
      method: 'POST',
      path: `/apps/:app_id/sending/${verb}`,
      summary,
      description: `${description} Answers the state afterwards.`,
      access: changes,
      limits: writes,
      answers: { 200: SendingAnswer },
      async handle(call) {
        await act(ctx, call.app.id, call)
        return { status: 200, body: await viewSending(ctx, call.app.id) }
      },
    })

  return [
    route({
      ...common,
      operation: 'viewSending',
      method: 'GET',
      path: '/apps/:app_id/sending',
      summary: 'View the state of sending',
      description: 'Whether the app sends or why not, and how much of its application message limit is used.',
      access: views,
      limits: reads,
      answers: { 200: SendingAnswer },
      async handle({ app }) {
        return { status: 200, body: await viewSending(ctx, app.id) }
      },
    }),
    control(
      'pause',
      'Pause all sending of an app',
      'What is due waits until sending is resumed or it expires; new messages are taken.',
      pauseSending,
    ),
    control('resume', 'Resume the sending of an app', 'What waited goes out.', resumeSending),
    control(
      'enable',
      'Re-enable an app',
      'Ends the disabling by the application message limit and begins a new window: what was sent before counts no more.',
      enableSending,
    ),
    route({
      ...common,
      operation: 'viewDeliverySettings',
      method: 'GET',
      path: '/apps/:app_id/delivery_settings',
      summary: 'View delivery settings',
      access: views,
      limits: reads,
      answers: { 200: DeliverySettingsAnswer },
      async handle({ app, now }) {
        const { settings } = await readSending(ctx.db, app.id, now)
        return { status: 200, body: settingsObject(settings) }
      },
    }),
    route({
      ...common,
      operation: 'updateDeliverySettings',
      method: 'PUT',
      path: '/apps/:app_id/delivery_settings',
      summary: 'Update delivery settings',
      description:
        'Fields that are given replace what is there, null takes the default again, the others stay. `limit_factor` is changed by an organization key alone.',
      access: changes,
      limits: writes,
      body: DeliverySettingsBody,
      answers: { 200: DeliverySettingsAnswer },
      async handle(call) {
        return { status: 200, body: settingsObject(await changeSettings(ctx, call.app.id, call.body, call)) }
      },
    }),
    route({
      ...common,
      operation: 'listAdministrators',
      method: 'GET',
      path: '/apps/:app_id/administrators',
      summary: 'View administrators',
      access: organization,
      limits: reads,
      answers: { 200: AdministratorsAnswer },
      async handle({ app }) {
        const administrators = await findAdministrators(ctx.db, app.id)
        return { status: 200, body: { administrators: administrators.map(administratorObject) } }
      },
    }),
    route({
      ...common,
      operation: 'addAdministrator',
      method: 'POST',
      path: '/apps/:app_id/administrators',
      summary: 'Add an administrator',
      description:
        'Who is notified when the app is disabled, its email paused, a sending domain failing, a template suspended, or deliveries of a message unknown: by webhook, by email, or both. An app has at most 50.',
      access: organization,
      limits: writes,
      body: AdministratorBody,
      answers: { 201: AdministratorAnswer },
      async handle(call) {
        const given = { email: call.body.email, webhookUrl: call.body.webhook_url }
        const added = await addAdministrator(ctx, call.app.id, given, call)
        return { status: 201, body: { ...administratorObject(added), webhook_secret: added.webhookSecret } }
      },
    }),
    route({
      ...common,
      operation: 'removeAdministrator',
      method: 'DELETE',
      path: '/apps/:app_id/administrators/:administrator_id',
      summary: 'Remove an administrator',
      access: organization,
      limits: writes,
      params: AdministratorPath,
      answers: { 200: DoneAnswer },
      async handle(call) {
        await removeAdministrator(ctx, call.app.id, call.params.administrator_id, call)
        return { status: 200, body: { success: true } }
      },
    }),
    route({
      ...common,
      operation: 'listNotices',
      method: 'GET',
      path: '/apps/:app_id/notices',
      summary: 'View notices',
      description:
        'What administrators had to be told, newest first: one for the app itself, one for each administrator.',
      access: views,
      limits: reads,
      query: NoticesQuery,
      answers: { 200: NoticesAnswer },
      async handle({ app, query: { limit, offset } }) {
        const { total, notices } = await listNotices(ctx.db, app.id, { limit, offset })
        return { status: 200, body: { limit, offset, total_count: total, notices: notices.map(noticeObject) } }
      },
    }),
  ]
}
