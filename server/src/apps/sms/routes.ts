import type { Route, RouteAccess } from '../../http/route.ts'
import { route } from '../../http/route.ts'
import { actorOf } from '../audit/actor.ts'
import type { AppsContext } from '../context.ts'
import { removeSms, setSms, viewSms } from './configure.ts'
import { SmsAnswer, SmsBody, SmsPath } from './schema.ts'

const common = {
  errors: 'apps' as const,
  tag: 'Texts',
  access: { kind: 'app', permission: 'apps', appIn: 'path', orOrganization: true } satisfies RouteAccess,
  path: '/apps/:app_id/sms_settings',
  params: SmsPath,
  answers: { 200: SmsAnswer },
}

export const smsRoutes = (ctx: AppsContext): Route[] => [
  route({
    ...common,
    operation: 'viewSmsSettings',
    method: 'GET',
    summary: 'View the provider of texts',
    limits: [{ rule: 'read' }],
    async handle({ app }) {
      return { status: 200, body: await viewSms(ctx, app.id) }
    },
  }),
  route({
    ...common,
    operation: 'updateSmsSettings',
    method: 'PUT',
    summary: 'Set the provider of texts',
    description:
      'Replaces what is there. The secret may be left out for as long as it stays with the same account or message centre. Works on every server within 5 seconds.',
    limits: [{ rule: 'write' }],
    body: SmsBody,
    async handle(call) {
      await setSms(ctx, call.app.id, call.body, actorOf(call))
      return { status: 200, body: await viewSms(ctx, call.app.id) }
    },
  }),
  route({
    ...common,
    operation: 'deleteSmsSettings',
    method: 'DELETE',
    summary: 'Take the provider of texts away',
    limits: [{ rule: 'write' }],
    async handle(call) {
      await removeSms(ctx, call.app.id, actorOf(call))
      return { status: 200, body: await viewSms(ctx, call.app.id) }
    },
  }),
]
