import type { Route, RouteAccess } from '../../http/route.ts'
import { route } from '../../http/route.ts'
import type { EmailMetricsContext } from './context.ts'
import { AppPath, ProviderMetricsAnswer, ProviderMetricsQuery, Reputation } from './schema.ts'
import { viewProviderMetrics, viewReputation } from './view.ts'

const access: RouteAccess = { kind: 'app', permission: 'messages', appIn: 'path' }

export function emailMetricsRoutes(ctx: EmailMetricsContext): Route[] {
  const common = { tag: 'Email', method: 'GET' as const, access, limits: [{ rule: 'read' }], params: AppPath }
  return [
    route({
      ...common,
      operation: 'getEmailProviderMetrics',
      path: '/apps/:app_id/email_analytics/provider_metrics',
      summary: 'Get email inbox provider metrics',
      description:
        'What became of the email of one sending domain, by inbox provider, for those that any of it went to. The list is empty when the domain is not one of the app, or is not active for sending.',
      errors: 'metrics',
      query: ProviderMetricsQuery,
      answers: { 200: ProviderMetricsAnswer },
      async handle({ app, query, now }) {
        return { status: 200, body: { providers: await viewProviderMetrics(ctx, app.id, query, now) } }
      },
    }),
    route({
      ...common,
      operation: 'getEmailReputation',
      path: '/apps/:app_id/email_analytics/delivery_metrics',
      summary: 'Get email reputation',
      description:
        'The shares of email that bounced and that was reported as spam, over all domains of the app. 0 where there was none.',
      errors: 'apps',
      answers: { 200: Reputation },
      async handle({ app, now }) {
        return { status: 200, body: await viewReputation(ctx.db, app.id, now) }
      },
    }),
  ]
}
