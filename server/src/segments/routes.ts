import type { Call, Route, RouteAccess, RouteLimit } from '../http/route.ts'
import { route } from '../http/route.ts'
import { ownProperty } from '../lib/own-property.ts'
import { createSegment, deleteSegment, updateSegment } from './change.ts'
import type { SegmentsContext } from './context.ts'
import { estimateRecipients } from './estimate.ts'
import { explainSegment } from './explain.ts'
import { readFilters } from './filters/read-filters.ts'
import { findMembers, previewAudience } from './members.ts'
import { type CountRequest, countSegment, filterTreeOf, getSegment, listSegments } from './read.ts'
import {
  AppPath,
  CreateSegmentBody,
  EstimateAnswer,
  EstimateBody,
  ExplainSegmentAnswer,
  ExplainSegmentQuery,
  ListQuery,
  MembersAnswer,
  MembersQuery,
  PreviewAnswer,
  PreviewBody,
  SavedAnswer,
  SegmentAnswer,
  SegmentPath,
  SegmentsAnswer,
  SuccessAnswer,
  UpdateSegmentBody,
  ViewQuery,
} from './schema.ts'
import { readSegmentId, segmentPayload } from './segment.ts'

const access: RouteAccess = { kind: 'app', permission: 'segments', appIn: 'path' }
/** These routes reveal who the users are and what is known about them. */
const showsUsers: RouteAccess = { kind: 'app', permission: 'users', appIn: 'path' }
const reads: RouteLimit[] = [{ rule: 'read' }]
const writes: RouteLimit[] = [{ rule: 'write' }]
/** Any page after the first counts as a lookback. */
const pages = (name: string): RouteLimit[] => [
  { rule: 'read', when: ({ query }) => !isLookback(ownProperty(query, name)) },
  { rule: 'lookback', counter: 'lookback', when: ({ query }) => isLookback(ownProperty(query, name)) },
]
const countingFor = ({ app, signal }: Pick<Call, 'app' | 'signal'>): CountRequest => ({ appId: app.id, signal })
const pageIn = ({ query }: { query: { limit: number; cursor?: string } }) => ({
  limit: query.limit,
  cursor: query.cursor?.toLowerCase(),
})
const isLookback = (value: unknown) => value !== undefined && value !== '0'

export function segmentRoutes(ctx: SegmentsContext): Route[] {
  const common = { tag: 'Segments', errors: 'segments' as const, access }

  return [
    route({
      ...common,
      operation: 'getSegments',
      method: 'GET',
      path: '/apps/:app_id/segments',
      summary: 'View segments',
      description: 'In the order they were made. The default segments come first and are read-only.',
      limits: pages('offset'),
      params: AppPath,
      query: ListQuery,
      answers: { 200: SegmentsAnswer },
      async handle({ app, query }) {
        return { status: 200, body: await listSegments(ctx, app.id, query.limit, query.offset) }
      },
    }),
    route({
      ...common,
      operation: 'createSegment',
      method: 'POST',
      path: '/apps/:app_id/segments',
      summary: 'Create segment',
      limits: writes,
      params: AppPath,
      body: CreateSegmentBody,
      answers: { 201: SavedAnswer },
      async handle(call) {
        const id = await createSegment(ctx, call.app.id, call.body, call)
        return { status: 201, body: { success: true, id } }
      },
    }),
    route({
      ...common,
      operation: 'getSegment',
      method: 'GET',
      path: '/apps/:app_id/segments/:segment_id',
      summary: 'View segment',
      description: 'How many subscriptions are in it now and, with `include-segment-detail=true`, what it is.',
      limits: reads,
      params: SegmentPath,
      query: ViewQuery,
      answers: { 200: SegmentAnswer },
      async handle(call) {
        const { app, params, query } = call
        const segment = await getSegment(ctx, app.id, readSegmentId(params.segment_id))
        const subscriber_count = await countSegment(ctx, countingFor(call), filterTreeOf(segment))
        const payload = query['include-segment-detail'] ? { payload: segmentPayload(app.id, segment) } : {}
        return { status: 200, body: { subscriber_count, ...payload } }
      },
    }),
    route({
      ...common,
      operation: 'updateSegment',
      method: 'PATCH',
      path: '/apps/:app_id/segments/:segment_id',
      summary: 'Update segment',
      description:
        'The name is always required. Filters, when given, replace all there were. Not while an active journey uses it: 400.',
      limits: writes,
      params: SegmentPath,
      body: UpdateSegmentBody,
      answers: { 200: SavedAnswer },
      async handle(call) {
        const id = readSegmentId(call.params.segment_id)
        await updateSegment(ctx, call.app.id, id, call.body, call)
        return { status: 200, body: { success: true, id } }
      },
    }),
    route({
      ...common,
      operation: 'deleteSegment',
      method: 'DELETE',
      path: '/apps/:app_id/segments/:segment_id',
      summary: 'Delete segment',
      description: 'For good. Users and subscriptions are not deleted. Not while an active journey uses it: 400.',
      limits: writes,
      params: SegmentPath,
      answers: { 200: SuccessAnswer },
      async handle(call) {
        await deleteSegment(ctx, call.app.id, call.params.segment_id, call)
        return { status: 200, body: { success: true } }
      },
    }),
    route({
      ...common,
      access: showsUsers,
      operation: 'getSegmentMembers',
      method: 'GET',
      path: '/apps/:app_id/segments/:segment_id/members',
      summary: 'View members of a segment',
      description: 'A page may hold fewer than `limit` members; the last one has no `next_cursor`.',
      limits: pages('cursor'),
      params: SegmentPath,
      query: MembersQuery,
      answers: { 200: MembersAnswer },
      async handle(call) {
        const segment = await getSegment(ctx, call.app.id, readSegmentId(call.params.segment_id))
        return { status: 200, body: await findMembers(ctx, countingFor(call), filterTreeOf(segment), pageIn(call)) }
      },
    }),
    route({
      ...common,
      access: showsUsers,
      operation: 'explainSegment',
      method: 'GET',
      path: '/apps/:app_id/segments/:segment_id/explain',
      summary: 'Explain why a user is in a segment, or is not',
      limits: reads,
      params: SegmentPath,
      query: ExplainSegmentQuery,
      answers: { 200: ExplainSegmentAnswer },
      async handle({ app, params, query }) {
        const segment = await getSegment(ctx, app.id, readSegmentId(params.segment_id))
        const body = await explainSegment(ctx, app.id, filterTreeOf(segment), query.alias_label, query.alias_id)
        return { status: 200, body }
      },
    }),
    route({
      ...common,
      access: showsUsers,
      operation: 'previewSegment',
      method: 'POST',
      path: '/apps/:app_id/segments/preview',
      summary: 'Count filters and view their first members, without making a segment',
      limits: reads,
      params: AppPath,
      body: PreviewBody,
      query: MembersQuery,
      answers: { 200: PreviewAnswer },
      async handle(call) {
        const { tree } = readFilters(call.body.filters)
        return { status: 200, body: await previewAudience(ctx, countingFor(call), tree, pageIn(call)) }
      },
    }),
    route({
      ...common,
      operation: 'estimateNotificationRecipients',
      method: 'POST',
      path: '/notifications/count-unsaved',
      summary: 'Estimate recipients',
      description:
        'How many subscribed subscriptions a message to this audience would reach, on target_channel or on all channels.',
      access: { kind: 'app', permission: 'messages', appIn: 'body' },
      errors: 'messages',
      limits: reads,
      body: EstimateBody,
      answers: { 200: EstimateAnswer },
      async handle(call) {
        return { status: 200, body: await estimateRecipients(ctx, countingFor(call), call.body) }
      },
    }),
  ]
}
