import type { Route, RouteAccess } from '../../http/route.ts'
import { route } from '../../http/route.ts'
import type { EmailContext } from '../context.ts'
import { AppPath, EmptiedAnswer, MailAnswer, MailboxAnswer, MailboxQuery, MailPath } from './schema.ts'
import { deleteAllCaught } from './store.ts'
import { viewCaughtEmail, viewMailbox } from './view.ts'

/** Mails contain personal data, because they are rendered for their recipients. */
const views: RouteAccess = {
  kind: 'app',
  permission: 'messages',
  also: { permission: 'users' },
  appIn: 'path',
  orOrganization: true,
}

export function mailboxRoutes(ctx: EmailContext): Route[] {
  const all = {
    errors: 'apps' as const,
    tag: 'Email',
    access: views,
    path: '/apps/:app_id/email/mailbox',
    params: AppPath,
  }
  return [
    route({
      ...all,
      operation: 'listCaughtMail',
      method: 'GET',
      summary: 'View the development mailbox',
      description:
        'Mail that was not sent because nobody has said how, newest first. The newest 1,000 are kept, for 7 days.',
      limits: [{ rule: 'read' }],
      query: MailboxQuery,
      answers: { 200: MailboxAnswer },
      async handle({ app, query }) {
        return { status: 200, body: await viewMailbox(ctx.db, app.id, query) }
      },
    }),
    route({
      ...all,
      operation: 'viewCaughtMail',
      method: 'GET',
      path: `${all.path}/:mail_id`,
      summary: 'View a mail of the development mailbox',
      limits: [{ rule: 'read' }],
      params: MailPath,
      answers: { 200: MailAnswer },
      async handle({ app, params }) {
        return { status: 200, body: await viewCaughtEmail(ctx.db, app.id, params.mail_id) }
      },
    }),
    route({
      ...all,
      operation: 'emptyMailbox',
      method: 'DELETE',
      summary: 'Empty the development mailbox',
      limits: [{ rule: 'write' }],
      answers: { 200: EmptiedAnswer },
      async handle({ app }) {
        return { status: 200, body: { deleted: await deleteAllCaught(ctx.db, app.id) } }
      },
    }),
  ]
}
