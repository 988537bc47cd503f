import { type Route, route } from '../../http/route.ts'
import { JourneyPath } from '../schema.ts'
import { readJourneyId } from '../view.ts'
import { ReportAnswer, SimulateBody } from './schema.ts'
import { type DryRunContext, simulate } from './simulate.ts'

export const dryRunRoutes = (ctx: DryRunContext): Route[] => [
  route({
    errors: 'journeys',
    tag: 'Journeys',
    operation: 'simulateJourney',
    method: 'POST',
    path: '/apps/:app_id/journeys/:journey_id/simulate',
    summary: 'Simulate journey',
    description:
      'A dry run: the users of today are walked through the journey on a virtual clock, and nothing is sent, changed or written. In any state, drafts too. One at a time for an app: another one meanwhile is a 409 `journey-simulation-running`.',
    access: { kind: 'app', permission: 'journeys:view', appIn: 'path' },
    limits: [{ rule: 'read' }],
    params: JourneyPath,
    body: SimulateBody,
    mayOmitBody: true,
    answers: { 200: ReportAnswer },
    async handle(call) {
      const id = readJourneyId(call.params.journey_id)
      return { status: 200, body: await simulate(ctx, call.app.id, id, call.body, call) }
    },
  }),
]
