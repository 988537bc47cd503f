import type { Route, RouteAccess, RouteLimit } from '../http/route.ts'
import { route } from '../http/route.ts'
import { ownProperty } from '../lib/own-property.ts'
import type { JourneysContext } from './context.ts'
import { createJourney } from './create.ts'
import { deleteJourney } from './delete.ts'
import { duplicateJourney } from './duplicate.ts'
import { updateJourney } from './edits/update.ts'
import { updateNode } from './edits/update-node.ts'
import { journeyObject } from './journey.ts'
import { components } from './nodes/schema.ts'
import {
  AddedAnswer,
  AddUserBody,
  AnyBody,
  AppPath,
  CreateBody,
  DeletedAnswer,
  DuplicateBody,
  JourneyAnswer,
  JourneyPath,
  JourneysAnswer,
  ListQuery,
  NodePath,
  RemovedAnswer,
  StatsAnswer,
  TraceAnswer,
  TraceQuery,
  UpdateBody,
  UpdateNodeBody,
  VersionAnswer,
  VersionPath,
  VersionsAnswer,
  VersionsQuery,
  WhomQuery,
} from './schema.ts'
import { viewStats } from './stats.ts'
import { addUser } from './users/add.ts'
import { removeUser } from './users/remove.ts'
import { traceUser } from './users/trace.ts'
import { getJourney, listJourneys, listVersions, readJourneyId, viewVersion } from './view.ts'

const views = { kind: 'app', permission: 'journeys:view', appIn: 'path' } as const satisfies RouteAccess
const edits: RouteAccess = { kind: 'app', permission: 'journeys:edit', appIn: 'path' }
const reads: RouteLimit[] = [{ rule: 'read' }]
const writes: RouteLimit[] = [{ rule: 'write' }]
/** A page after the first looks back. */
const pages = (name: string): RouteLimit[] => [
  { rule: 'read', when: ({ query }) => ownProperty(query, name) === undefined },
  { rule: 'lookback', counter: 'lookback', when: ({ query }) => ownProperty(query, name) !== undefined },
]
/** A node in a branch lies four levels below the node that it branches from. */
const LARGE = { maxKeys: 20_000, maxDepth: 64, components }

export function journeyRoutes(ctx: JourneysContext): Route[] {
  const all = { errors: 'journeys' as const, tag: 'Journeys', path: '/apps/:app_id/journeys' }
  const one = { ...all, path: `${all.path}/:journey_id`, params: JourneyPath }
  return [
    route({
      ...all,
      operation: 'viewJourneys',
      method: 'GET',
      summary: 'View journeys',
      description: 'Newest first, without what only the view of one journey shows.',
      access: views,
      limits: pages('cursor'),
      params: AppPath,
      query: ListQuery,
      answers: { 200: JourneysAnswer },
      async handle({ app, query }) {
        return { status: 200, body: await listJourneys(ctx, app.id, query.limit, query.cursor) }
      },
    }),
    route({
      ...all,
      ...LARGE,
      operation: 'createJourney',
      method: 'POST',
      summary: 'Create journey',
      description: 'A draft; only the name is required. Everything that is wrong is reported at once, with its path.',
      access: edits,
      limits: writes,
      params: AppPath,
      body: AnyBody,
      describedBody: CreateBody,
      answers: { 201: JourneyAnswer },
      async handle(call) {
        const journey = await createJourney(ctx, call.app.id, call.body, call)
        return { status: 201, body: journeyObject(call.app.id, journey) }
      },
    }),
    route({
      ...one,
      operation: 'viewJourney',
      method: 'GET',
      summary: 'View journey',
      description: 'Everything, with the ids of nodes and branches and the concurrency key that an update sends back.',
      access: views,
      limits: reads,
      answers: { 200: JourneyAnswer },
      async handle({ app, params }) {
        const journey = await getJourney(ctx, app.id, readJourneyId(params.journey_id))
        return { status: 200, body: journeyObject(app.id, journey) }
      },
    }),
    route({
      ...one,
      ...LARGE,
      operation: 'updateJourney',
      method: 'PATCH',
      summary: 'Update journey',
      description:
        'A JSON merge patch: what is given replaces, null clears, lists are replaced as a whole. Nodes and branches that are sent back with their ids stay who they are. `state` moves it: a draft to active (through processing) or scheduled, scheduled and processing back to draft, active to archived.',
      access: edits,
      limits: writes,
      body: AnyBody,
      describedBody: UpdateBody,
      answers: { 200: JourneyAnswer },
      async handle(call) {
        const id = readJourneyId(call.params.journey_id)
        const journey = await updateJourney(ctx, call.app.id, id, call.body, call)
        return { status: 200, body: journeyObject(call.app.id, journey) }
      },
    }),
    route({
      ...one,
      operation: 'deleteJourney',
      method: 'DELETE',
      summary: 'Delete journey',
      description: 'In any state, for good. Those who are in it stop where they are.',
      access: edits,
      limits: writes,
      answers: { 200: DeletedAnswer },
      async handle(call) {
        await deleteJourney(ctx, call.app.id, readJourneyId(call.params.journey_id), call)
        return { status: 200, body: { success: true } }
      },
    }),
    route({
      ...one,
      ...LARGE,
      operation: 'updateJourneyNode',
      method: 'PATCH',
      path: `${one.path}/nodes/:node_id`,
      summary: 'Update journey node',
      description: 'A JSON merge patch of one node, at any depth; its kind and id stay. Answers the whole journey.',
      access: edits,
      limits: writes,
      params: NodePath,
      body: AnyBody,
      describedBody: UpdateNodeBody,
      answers: { 200: JourneyAnswer },
      async handle(call) {
        const { journey_id, node_id } = call.params
        const id = readJourneyId(journey_id)
        const journey = await updateNode(ctx, call.app.id, id, node_id.toLowerCase(), call.body, call)
        return { status: 200, body: journeyObject(call.app.id, journey) }
      },
    }),
    route({
      ...one,
      operation: 'viewJourneyStats',
      method: 'GET',
      path: `${one.path}/stats`,
      summary: 'View journey stats',
      description: 'How many came by, at every node and branch.',
      access: views,
      limits: reads,
      answers: { 200: StatsAnswer },
      async handle({ app, params }) {
        return { status: 200, body: await viewStats(ctx, app.id, readJourneyId(params.journey_id)) }
      },
    }),
    route({
      ...one,
      operation: 'addJourneyUser',
      method: 'POST',
      path: `${one.path}/users`,
      summary: 'Add a user to a journey',
      description:
        'Into an active journey, whether or not the user is in its audience. Name the user by `external_id` or `onesignal_id`. A 409 `journey-user-present` when they are in it, or may not enter it again.',
      access: edits,
      limits: writes,
      body: AddUserBody,
      answers: { 201: AddedAnswer },
      async handle(call) {
        const id = readJourneyId(call.params.journey_id)
        return { status: 201, body: { run_id: await addUser(ctx, call.app.id, id, call.body, call) } }
      },
    }),
    route({
      ...one,
      operation: 'removeJourneyUser',
      method: 'DELETE',
      path: `${one.path}/users`,
      summary: 'Remove a user from a journey',
      description: 'Ends every run of the user that is under way; it counts as an early exit.',
      access: edits,
      limits: writes,
      query: WhomQuery,
      answers: { 200: RemovedAnswer },
      async handle(call) {
        const id = readJourneyId(call.params.journey_id)
        return {
          status: 200,
          body: { success: true, removed: await removeUser(ctx, call.app.id, id, call.query, call) },
        }
      },
    }),
    route({
      ...one,
      operation: 'traceJourneyUser',
      method: 'GET',
      path: `${one.path}/runs`,
      summary: 'Trace a user in a journey',
      description:
        'The runs of one user, newest first: where they are, since when, what would move them on, and what they came by. Name the user by `external_id` or `onesignal_id`.',
      access: { ...views, also: { permission: 'users' } },
      limits: pages('cursor'),
      query: TraceQuery,
      answers: { 200: TraceAnswer },
      async handle({ app, params, query }) {
        return { status: 200, body: await traceUser(ctx, app.id, readJourneyId(params.journey_id), query) }
      },
    }),
    route({
      ...one,
      operation: 'duplicateJourney',
      method: 'POST',
      path: `${one.path}/duplicate`,
      summary: 'Duplicate journey',
      description: 'A draft with the same content, nodes of its own and no schedule.',
      access: edits,
      limits: writes,
      body: DuplicateBody,
      mayOmitBody: true,
      answers: { 201: JourneyAnswer },
      async handle(call) {
        const id = readJourneyId(call.params.journey_id)
        const journey = await duplicateJourney(ctx, call.app.id, id, call.body, call)
        return { status: 201, body: journeyObject(call.app.id, journey) }
      },
    }),
    route({
      ...one,
      operation: 'viewJourneyVersions',
      method: 'GET',
      path: `${one.path}/versions`,
      summary: 'View versions of a journey',
      description: 'Newest first: who changed what, and when. The newest 100 are kept.',
      access: views,
      limits: pages('before'),
      query: VersionsQuery,
      answers: { 200: VersionsAnswer },
      async handle({ app, params, query }) {
        return { status: 200, body: await listVersions(ctx, app.id, readJourneyId(params.journey_id), query) }
      },
    }),
    route({
      ...one,
      operation: 'viewJourneyVersion',
      method: 'GET',
      path: `${one.path}/versions/:version`,
      summary: 'View a version of a journey',
      description: 'The journey as it was then.',
      access: views,
      limits: reads,
      params: VersionPath,
      answers: { 200: VersionAnswer },
      async handle({ app, params }) {
        const version = /^\d{1,9}$/.test(params.version) ? Number(params.version) : 0
        return { status: 200, body: await viewVersion(ctx, app.id, readJourneyId(params.journey_id), version) }
      },
    }),
  ]
}
