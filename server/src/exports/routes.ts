import type { Route, RouteLimit } from '../http/route.ts'
import { route } from '../http/route.ts'
import type { ExportsContext } from './context.ts'
import { fetchExport } from './fetch.ts'
import { exportActivity, exportHistory, exportSubscriptions } from './request.ts'
import {
  AppQuery,
  FileAnswer,
  FileBytes,
  FilePath,
  HistoryAnswer,
  HistoryBody,
  MessagePath,
  SubscriptionsBody,
} from './schema.ts'

const lookback: RouteLimit[] = [{ rule: 'lookback', counter: 'lookback' }]

export function exportRoutes(ctx: ExportsContext): Route[] {
  const common = { errors: 'messages' as const, tag: 'Exports', limits: lookback }
  const addressOf = (path: string) => `${ctx.baseUrl()}${path}`

  return [
    route({
      ...common,
      operation: 'getNotificationHistory',
      method: 'POST',
      path: '/notifications/:message_id/history',
      summary: 'Export the history of a message',
      description:
        'The users it was sent to, or who clicked it, as gzipped CSV at `destination_url`: 403 until it is ready, then kept for 3 days.',
      access: { kind: 'app', permission: 'messages', appIn: 'body' },
      params: MessagePath,
      body: HistoryBody,
      answers: { 200: HistoryAnswer },
      async handle(call) {
        const { app, params, body } = call
        const path = await exportHistory(ctx, app.id, params.message_id, body.events, call)
        return { status: 200, body: { success: true, destination_url: addressOf(path) } }
      },
    }),
    route({
      ...common,
      operation: 'exportEvents',
      method: 'POST',
      path: '/notifications/:message_id/export_events',
      summary: 'Export the audience activity of a message',
      description:
        'The outcome for each recipient, as gzipped CSV at `csv_file_url`: 403 until it is ready, then kept for 3 days.',
      access: { kind: 'app', permission: 'messages', appIn: 'query' },
      params: MessagePath,
      query: AppQuery,
      answers: { 200: FileAnswer },
      async handle(call) {
        const path = await exportActivity(ctx, call.app.id, call.params.message_id, call)
        return { status: 200, body: { csv_file_url: addressOf(path) } }
      },
    }),
    route({
      ...common,
      operation: 'exportSubscriptions',
      method: 'POST',
      path: '/players/csv_export',
      summary: 'Export subscriptions',
      description:
        'All of them or those of a segment, as gzipped CSV at `csv_file_url`: 403 until it is ready, then kept for 3 days.',
      access: { kind: 'app', permission: 'users', appIn: 'query' },
      query: AppQuery,
      body: SubscriptionsBody,
      mayOmitBody: true,
      answers: { 200: FileAnswer },
      async handle(call) {
        const path = await exportSubscriptions(ctx, call.app.id, call.body, call)
        return { status: 200, body: { csv_file_url: addressOf(path) } }
      },
    }),
    route({
      ...common,
      operation: 'fetchExport',
      method: 'GET',
      path: '/exports/:app_id/:export_id/:file',
      summary: 'Fetch an exported file',
      description: 'By the address that asking for it answered. 403 until it is ready, 404 when it is gone.',
      access: { kind: 'public' },
      limits: [],
      params: FilePath,
      answers: { 200: FileBytes },
      produces: 'application/gzip',
      async handle({ params }) {
        const { size, chunks } = await fetchExport(ctx, params.app_id, params.export_id.toLowerCase(), params.file)
        return {
          status: 200,
          body: chunks,
          headers: {
            'content-type': 'application/gzip',
            'content-length': String(size),
            'content-disposition': `attachment; filename="${params.export_id}.csv.gz"`,
            'cache-control': 'private, no-store',
          },
        }
      },
    }),
  ]
}
