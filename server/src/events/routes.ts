import type { Route, RouteAccess } from '../http/route.ts'
import { route } from '../http/route.ts'
import { authorityOf } from '../lib/authority.ts'
import type { EventsContext } from './context.ts'
import { viewHistory } from './history.ts'
import { recordEvents } from './record.ts'
import { AliasPath, AppPath, EventsAnswer, EventsBody, HistoryAnswer, HistoryQuery } from './schema.ts'

/** Events are part of what is known of a user, so a key with the permission for users may write and read them. */
const access: RouteAccess = { kind: 'app', permission: 'users', appIn: 'path' }
const forSdks: RouteAccess = { ...access, keyless: () => true }

export function eventRoutes(ctx: EventsContext): Route[] {
  const common = { errors: 'users' as const, tag: 'Custom events' }

  const create = (operation: string, path: string, summary: string) =>
    route({
      ...common,
      operation,
      method: 'POST',
      path,
      summary,
      description:
        'Stores what users did. Each event is accepted or not by itself: those of unknown users, of more than 2,024 bytes, or from before the retention are named in `errors`.',
      access: forSdks,
      limits: [{ rule: 'events' }],
      params: AppPath,
      body: EventsBody,
      maxKeys: Number.POSITIVE_INFINITY,
      answers: { 202: EventsAnswer },
      async handle({ app, body, caller }) {
        return { status: 202, body: await recordEvents(ctx, app.id, body, authorityOf(caller)) }
      },
    })

  return [
    create('createCustomEvents', '/apps/:app_id/custom_events', 'Create custom events'),
    create(
      'createCustomEventsByOldPath',
      '/apps/:app_id/integrations/custom_events',
      'Create custom events (older SDKs)',
    ),
    route({
      ...common,
      operation: 'viewCustomEvents',
      method: 'GET',
      path: '/apps/:app_id/users/by/:alias_label/:alias_id/custom_events',
      summary: 'View custom events of a user',
      description: 'Newest first. `next_cursor` leads to the page of older ones.',
      access,
      limits: [
        { rule: 'view', when: ({ query }) => query.cursor === undefined },
        { rule: 'lookback', counter: 'lookback', when: ({ query }) => query.cursor !== undefined },
      ],
      params: AliasPath,
      query: HistoryQuery,
      answers: { 200: HistoryAnswer },
      async handle({ app, params, query }) {
        return { status: 200, body: await viewHistory(ctx, app.id, params, query) }
      },
    }),
  ]
}
