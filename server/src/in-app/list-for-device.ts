// Lists the messages that a device may show now. Concurrent requests share the same few statements, and one of these
// evaluates the segments of all messages.

import type { Authority } from '../lib/authority.ts'
import type { Clock } from '../lib/clock.ts'
import { subscriptionNotFound, userNotFound } from '../lib/errors.ts'
import type { AppId, SubscriptionId, UserId } from '../lib/ids.ts'
import { matchSubscriptions, type SubscriptionMatch } from '../segments/audience.ts'
import type { FilterNode } from '../segments/filters/tree.ts'
import { filterTreeOf, getSegmentsById } from '../segments/read.ts'
import type { SegmentId } from '../segments/segment.ts'
import type { Db } from '../storage/db.ts'
import type { Merger } from '../storage/merge.ts'
import { AMBIGUOUS_LANGUAGES, matchLanguage } from '../templates/language.ts'
import { readTargetUser } from '../users/devices/authorize.ts'
import type { UserReader } from '../users/read.ts'
import { checkDeviceOwner } from './check-owner.ts'
import { platformOf } from './message.ts'
import type { DeviceAnswer } from './schema.ts'
import { findGrants, findLiveMessages, type LiveMessage } from './store.ts'
import { deviceTriggerObject } from './triggers.ts'

/** The owner of the device, and the messages that it may show; undefined when the subscription does not exist. */
export type DeviceMessages = { userId: UserId; messages: LiveMessage[] }
export type FindDeviceMessages = (appId: AppId, id: SubscriptionId) => Promise<DeviceMessages | undefined>

type ListContext = { findDeviceMessages: FindDeviceMessages; users: UserReader }

/** A segment has up to 200 filters, some of which take seven parameters or more. A statement can have 65,535. */
const SEGMENTS_AT_ONCE = 25

export const createFindDeviceMessages = ({
  db,
  clock,
  merger,
}: {
  db: Db
  clock: Clock
  merger: Merger
}): FindDeviceMessages =>
  merger.merged({
    name: 'in-app.serve',
    parallel: 2,
    run: async (appId, ids: SubscriptionId[]) =>
      (await findForAll(db, appId, ids, clock.now())).map((value) => ({ value })),
  })

async function findForAll(
  db: Db,
  appId: AppId,
  ids: SubscriptionId[],
  now: Date,
): Promise<(DeviceMessages | undefined)[]> {
  const live = await findLiveMessages(db, appId, now)
  const trees = await readTrees(db, appId, live)
  const judged = await judgeAll(db, appId, [...new Set(ids)], trees, now)
  const granted = live.some(({ audience }) => audience === 'granted')
    ? await findGrants(db, appId, [...new Set([...judged.values()].map(({ userId }) => userId))], now)
    : []
  const grants = new Set(granted.map(({ userId, messageId }) => `${userId} ${messageId}`))
  return ids.map((id) => {
    const device = judged.get(id)
    if (!device) return undefined
    const isMeant = (it: LiveMessage) =>
      isOnPlatform(it, device) &&
      isInAudience(it, device.segments) &&
      (it.audience !== 'granted' || grants.has(`${device.userId} ${it.id}`))
    return { userId: device.userId, messages: live.filter(isMeant) }
  })
}

async function readTrees(db: Db, appId: AppId, live: LiveMessage[]): Promise<Map<SegmentId, FilterNode>> {
  const ids = new Set(
    live.flatMap(({ includedSegments, excludedSegments }) => [...includedSegments, ...excludedSegments]),
  )
  if (ids.size === 0) return new Map()
  const segments = await getSegmentsById({ db }, appId, [...ids])
  return new Map([...segments].map(([id, segment]) => [id, filterTreeOf(segment)]))
}

/** For each segment, whether the device is in it. Deleted segments are absent. */
type JudgedDevice = Omit<SubscriptionMatch, 'matches'> & { segments: Map<SegmentId, boolean> }

async function judgeAll(
  db: Db,
  appId: AppId,
  ids: SubscriptionId[],
  trees: Map<SegmentId, FilterNode>,
  now: Date,
): Promise<Map<SubscriptionId, JudgedDevice>> {
  const devices = new Map<SubscriptionId, JudgedDevice>()
  const entries = [...trees]
  for (let at = 0; at === 0 || at < entries.length; at += SEGMENTS_AT_ONCE) {
    const some = entries.slice(at, at + SEGMENTS_AT_ONCE)
    const nodes = some.map(([, node]) => node)
    for (const { matches, ...rest } of await matchSubscriptions(db, nodes, { appId, now }, ids)) {
      const device = devices.get(rest.id) ?? { ...rest, segments: new Map() }
      for (const [i, [id]] of some.entries()) device.segments.set(id, matches[i] === true)
      devices.set(rest.id, device)
    }
  }
  return devices
}

const isOnPlatform = ({ platforms }: LiveMessage, { type }: JudgedDevice) => {
  const platform = platformOf(type)
  return platforms.length === 0 || (platform !== undefined && platforms.includes(platform))
}

/**
 * A deleted segment includes nobody. When an excluded segment was deleted, it is unknown whom it excluded, so nobody is
 * shown the message.
 */
const isInAudience = ({ includedSegments, excludedSegments }: LiveMessage, segments: JudgedDevice['segments']) =>
  (includedSegments.length === 0 || includedSegments.some((id) => segments.get(id) === true)) &&
  excludedSegments.every((id) => segments.get(id) === false)

export async function listForDevice(
  { findDeviceMessages, users }: ListContext,
  appId: AppId,
  id: SubscriptionId,
  authority: Authority,
): Promise<DeviceAnswer> {
  await checkDeviceOwner(users, appId, id, authority)
  const found = await findDeviceMessages(appId, id)
  if (!found) throw subscriptionNotFound()
  return { in_app_messages: found.messages.map(deviceObject) }
}

/** The same, for a device that names its user. */
export async function listForDeviceOfUser(
  ctx: ListContext,
  appId: AppId,
  alias: { label: string; value: string },
  id: SubscriptionId,
  authority: Authority,
): Promise<DeviceAnswer> {
  const userId = await ctx.users.owner(appId, readTargetUser(alias.label, alias.value, authority))
  if (userId === undefined) throw userNotFound()
  await checkDeviceOwner(ctx.users, appId, id, authority)
  const found = await ctx.findDeviceMessages(appId, id)
  if (found?.userId !== userId) throw subscriptionNotFound()
  return { in_app_messages: found.messages.map(deviceObject) }
}

/** Empty fields are left out: some SDKs treat the mere presence of `has_liquid` as true, and fail on null. */
const deviceObject = (it: LiveMessage): DeviceAnswer['in_app_messages'][number] => ({
  id: it.id,
  variants: Object.fromEntries(
    (it.platforms.length === 0 ? ['all'] : it.platforms).map((platform) => [platform, byLanguage(it.variants)]),
  ),
  triggers: it.triggers.map((list) => list.map(deviceTriggerObject)),
  ...(it.redisplayLimit !== null && {
    redisplay: { limit: it.redisplayLimit, delay: it.redisplayDelay ?? 0 },
  }),
  ...(it.endTime && { end_time: it.endTime.toISOString() }),
  ...(it.hasLiquid && { has_liquid: true as const }),
  ...(it.displayDuration !== null && { displayDuration: it.displayDuration }),
})

/** Devices look up the single code by which they know their language. */
function byLanguage(variants: Record<string, string>): Record<string, string> {
  const named: Record<string, string> = { ...variants, default: variants.en as string }
  for (const name of AMBIGUOUS_LANGUAGES) {
    const id = matchLanguage(variants, name)
    if (id !== undefined) named[name] = id
  }
  return named
}
