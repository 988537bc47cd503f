// A stored segment, and the default segments, which every app has without a row. Apps that existed before them have
// them too, and nobody can change or delete them.

import { hash } from 'node:crypto'
import { AppError } from '../lib/errors.ts'
import { type AppId, type Id, isUuid } from '../lib/ids.ts'
import type { SegmentFilter } from './filters/tree.ts'
import type { SegmentItem } from './schema.ts'

export type SegmentId = Id<'segment'>

export type Segment = {
  id: SegmentId
  name: string
  description: string | null
  filters: SegmentFilter[]
  createdAt: Date
  updatedAt: Date
}

const WEEK_HOURS = '168'

/** The filters of the last one match everything, because every subscription has a device type. */
const DEFAULTS: readonly { name: string; filters: SegmentFilter[] }[] = [
  { name: 'Subscribed Users', filters: [{ field: 'subscribed', relation: '=', value: 'true' }] },
  { name: 'Active Users', filters: [{ field: 'last_session', relation: '<', hours_ago: WEEK_HOURS }] },
  {
    name: 'Engaged Users',
    filters: [
      { field: 'last_session', relation: '<', hours_ago: WEEK_HOURS },
      { field: 'session_count', relation: '>', value: '4' },
    ],
  },
  { name: 'Inactive Users', filters: [{ field: 'last_session', relation: '>', hours_ago: WEEK_HOURS }] },
  { name: 'Total Subscriptions', filters: [{ field: 'device_type', relation: 'exists' }] },
]

/**
 * Derived from the app and the name, in the form of a version 4 UUID, so that it is the same on every server at all
 * times.
 */
function defaultId(appId: AppId, name: string): SegmentId {
  const hex = hash('sha256', `carillon segment ${appId} ${name}`, 'hex')
  const variant = '89ab'[Number.parseInt(hex[16] as string, 16) & 3]
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

export const defaultSegments = (appId: AppId, madeAt: Date): Segment[] =>
  DEFAULTS.map(({ name, filters }) => ({
    id: defaultId(appId, name),
    name,
    description: null,
    filters,
    createdAt: madeAt,
    updatedAt: madeAt,
  }))

const EVERYBODY = { alias: 'All', segment: 'Total Subscriptions' }

/**
 * Finds the segment that a caller refers to by name. `All` is what the public service called everybody before it had
 * default segments, and many libraries still send it. A segment that an app itself named `All` takes precedence.
 */
export function findSegmentByName(segments: readonly Segment[], name: string): Segment | undefined {
  const named = segments.find((it) => it.name === name)
  if (named || name !== EVERYBODY.alias) return named
  const everybody = segments.find((it) => it.name === EVERYBODY.segment)
  return everybody && { ...everybody, name }
}

export const isDefaultName = (name: string) => DEFAULTS.some((it) => it.name === name)
export const isDefaultId = (appId: AppId, id: SegmentId) => DEFAULTS.some(({ name }) => defaultId(appId, name) === id)

export const segmentNotFound = () => new AppError('not-found', { code: 'segment-0', title: 'segment not found' })

/** Reads an id from a path. Text that is not an id counts as an unknown segment. */
export function readSegmentId(given: string): SegmentId {
  if (!isUuid(given)) throw segmentNotFound()
  return given.toLowerCase()
}

export const segmentItem = (appId: AppId, it: Segment): SegmentItem => ({
  id: it.id,
  name: it.name,
  description: it.description,
  created_at: it.createdAt.toISOString(),
  updated_at: it.updatedAt.toISOString(),
  app_id: appId,
  read_only: isDefaultId(appId, it.id),
  is_active: true,
})

export const segmentPayload = (appId: AppId, it: Segment) => ({
  id: it.id,
  name: it.name,
  description: it.description,
  created_at: Math.floor(it.createdAt.getTime() / 1000),
  source: isDefaultId(appId, it.id) ? ('default' as const) : ('custom' as const),
  filters: it.filters,
})
