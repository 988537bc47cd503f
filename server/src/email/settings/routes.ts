import type { Route, RouteAccess, RouteLimit } from '../../http/route.ts'
import { route } from '../../http/route.ts'
import type { EmailContext } from '../context.ts'
import { resumeEmail } from '../pause.ts'
import { removeEmailSettings, setEmailSettings, viewEmailSettings } from './configure.ts'
import { AppPath, EmailSettingsAnswer, EmailSettingsBody } from './schema.ts'

const changes: RouteAccess = { kind: 'app', permission: 'apps', appIn: 'path', orOrganization: true }
const writes: RouteLimit[] = [{ rule: 'write' }]

export function emailSettingsRoutes(ctx: EmailContext): Route[] {
  const common = {
    errors: 'apps' as const,
    tag: 'Email',
    access: changes,
    path: '/apps/:app_id/email/settings',
    params: AppPath,
    answers: { 200: EmailSettingsAnswer },
  }
  return [
    route({
      ...common,
      operation: 'viewEmailSettings',
      method: 'GET',
      summary: 'View how mail goes out',
      limits: [{ rule: 'read' }],
      async handle({ app }) {
        return { status: 200, body: await viewEmailSettings(ctx, app.id) }
      },
    }),
    route({
      ...common,
      operation: 'updateEmailSettings',
      method: 'PUT',
      summary: 'Set how mail goes out',
      description:
        'Replaces what is there. The password may be left out for as long as it stays with the same relay and user. Works on every server within 5 seconds.',
      limits: writes,
      body: EmailSettingsBody,
      async handle(call) {
        await setEmailSettings(ctx, call.app.id, call.body, call)
        return { status: 200, body: await viewEmailSettings(ctx, call.app.id) }
      },
    }),
    route({
      ...common,
      operation: 'deleteEmailSettings',
      method: 'DELETE',
      summary: 'Let mail go out as the server does it',
      limits: writes,
      async handle(call) {
        await removeEmailSettings(ctx, call.app.id, call)
        return { status: 200, body: await viewEmailSettings(ctx, call.app.id) }
      },
    }),
    route({
      ...common,
      operation: 'resumeEmail',
      method: 'POST',
      path: '/apps/:app_id/email/resume',
      summary: 'Resume email that was paused for complaints',
      description: 'What waited goes out. Complaints up to now count no more.',
      limits: writes,
      async handle(call) {
        await resumeEmail(ctx, call.app.id, call)
        return { status: 200, body: await viewEmailSettings(ctx, call.app.id) }
      },
    }),
  ]
}
