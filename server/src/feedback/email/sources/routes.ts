import Type from 'typebox'
import type { Call, Route, RouteAccess } from '../../../http/route.ts'
import { route } from '../../../http/route.ts'
import type { FeedbackContext } from '../../context.ts'
import { changeSources, viewSources } from './change.ts'
import { receiveEvents } from './receive-events.ts'
import { EventSourcesAnswer, EventSourcesBody, SecretPath, SourcesPath, TakenAnswer } from './schema.ts'
import { type EmailEventSource, emailEventSources } from './source.ts'

const NAMES: Record<EmailEventSource, string> = {
  ses: 'Amazon SES',
  mailgun: 'Mailgun',
  sendgrid: 'SendGrid',
  postmark: 'Postmark',
}
const PROOFS: Record<EmailEventSource, string> = {
  ses: 'as messages of its SNS topic, whose signature is verified',
  mailgun: 'signed with the app’s key; each token is taken once, within 15 minutes',
  sendgrid: 'signed with its key over the time and the whole body',
  postmark: 'with the name and password that the app has set',
}
/** SendGrid sends up to 768 kB at once. */
const MAX_BYTES = 1_048_576

const settings = {
  errors: 'apps' as const,
  tag: 'Email',
  access: { kind: 'app', permission: 'apps', appIn: 'path', orOrganization: true } satisfies RouteAccess,
  path: '/apps/:app_id/email/event_sources',
  params: SourcesPath,
  answers: { 200: EventSourcesAnswer },
}

export function eventSourceRoutes(ctx: FeedbackContext): Route[] {
  const taking = {
    method: 'POST' as const,
    tag: 'Email',
    errors: 'messages' as const,
    access: { kind: 'public' as const },
    limits: [],
    body: Type.Unsafe<Buffer | undefined>({ description: 'As the provider writes it.' }),
    isRaw: true as const,
    maxBodyBytes: MAX_BYTES,
    answers: { 200: TakenAnswer },
  }
  const take = async (
    source: EmailEventSource,
    call: Pick<Call<{ app_id: string; secret?: string }>, 'params' | 'body' | 'header'>,
  ) => {
    const { params, body } = call
    await receiveEvents(ctx, params.app_id, source, {
      body: Buffer.isBuffer(body) ? body : Buffer.alloc(0),
      header: (name) => call.header(name),
      pathSecret: params.secret,
    })
    return { status: 200, body: { success: true } }
  }

  return [
    route({
      ...settings,
      operation: 'viewEmailEventSources',
      method: 'GET',
      summary: 'View who may tell what became of email',
      limits: [{ rule: 'read' }],
      async handle({ app }) {
        return { status: 200, body: await viewSources(ctx, app.id) }
      },
    }),
    route({
      ...settings,
      operation: 'updateEmailEventSources',
      method: 'PUT',
      summary: 'Set who may tell what became of email',
      description: 'A provider that is left out stays as it is, null takes it away.',
      limits: [{ rule: 'write' }],
      body: EventSourcesBody,
      async handle(call) {
        await changeSources(ctx, call.app.id, call.body, call)
        return { status: 200, body: await viewSources(ctx, call.app.id) }
      },
    }),
    ...emailEventSources.map((source) =>
      route({
        ...taking,
        operation: `take${NAMES[source].replaceAll(/\W/g, '')}Events`,
        path: `/apps/:app_id/email/events/${source}`,
        summary: `${NAMES[source]} tells what became of email`,
        description: `For ${NAMES[source]} alone: ${PROOFS[source]}. Each event counts once.`,
        params: SourcesPath,
        handle: (call) => take(source, call),
      }),
    ),
    route({
      ...taking,
      operation: 'takePostmarkEventsBySecret',
      path: '/apps/:app_id/email/events/postmark/:secret',
      summary: 'Postmark tells what became of email, at an address that nobody else knows',
      params: SecretPath,
      handle: (call) => take('postmark', call),
    }),
  ]
}
