import type { Route, RouteAccess } from '../http/route.ts'
import { route } from '../http/route.ts'
import type { OutcomesContext } from './context.ts'
import { readMeasure, readMeasureSources } from './read-measure.ts'
import { AppPath, MeasureBody, MeasureSourcesBody, Nothing, OutcomesAnswer, OutcomesQuery } from './schema.ts'
import { viewOutcomesOfApp } from './view.ts'

const forSdks: RouteAccess = { kind: 'app', permission: 'messages', appIn: 'body', keyless: () => true }

export function outcomeRoutes(ctx: OutcomesContext): Route[] {
  const common = { errors: 'messages' as const, tag: 'Outcomes' }
  return [
    route({
      ...common,
      operation: 'measureOutcome',
      method: 'POST',
      path: '/outcomes/measure',
      summary: 'Measure an outcome',
      description: 'Called by SDKs: something was done, perhaps because of a message.',
      access: forSdks,
      limits: [{ rule: 'outcomes' }],
      body: MeasureBody,
      answers: { 200: Nothing },
      async handle({ app, body, now }) {
        await ctx.recordMeasure(app.id, readMeasure(body, now))
        return { status: 200, body: {} }
      },
    }),
    route({
      ...common,
      operation: 'measureOutcomeSources',
      method: 'POST',
      path: '/outcomes/measure_sources',
      summary: 'Measure an outcome (older SDKs)',
      access: forSdks,
      limits: [{ rule: 'outcomes' }],
      body: MeasureSourcesBody,
      answers: { 200: Nothing },
      async handle({ app, body, now }) {
        await ctx.recordMeasure(app.id, readMeasureSources(body, now))
        return { status: 200, body: {} }
      },
    }),
    route({
      ...common,
      operation: 'getOutcomes',
      method: 'GET',
      path: '/apps/:app_id/outcomes',
      summary: 'View outcomes',
      description:
        'How often each was done, or what it adds up to, in the order asked for. Counted by the hour: the hour in which the range begins counts whole.',
      access: { kind: 'app', permission: 'messages', appIn: 'path' },
      limits: [{ rule: 'read' }],
      params: AppPath,
      query: OutcomesQuery,
      answers: { 200: OutcomesAnswer },
      async handle({ app, query }) {
        return { status: 200, body: { outcomes: await viewOutcomesOfApp(ctx, app.id, query) } }
      },
    }),
  ]
}
