// Which messages a device may show now. Devices that ask at the same time are answered by the same few statements, and the
// segments of all messages are judged in one of them.

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

/** Whose device it is, and what it may show; undefined when there is no such subscription. */
export type DeviceMessages = { userId: UserId; messages: LiveMessage[] }
export type FindDeviceMessages = (appId: AppId, id: SubscriptionId) => Promise<DeviceMessages | undefined>

type ListContext = { findDeviceMessages: FindDeviceMessages; users: UserReader }

/** A segment has up to 200 filters, of which some take seven values or more; a statement has room for 65,535. */
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

/** For each segment whether the device is in it; those that were deleted are not there. */
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

/** A deleted segment has nobody in it; and who was to be excluded by it is not known any more, so nobody is shown anything. */
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

/** The same, for a device that says whose it is. */
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

/** Fields that say nothing are left out: some SDKs take the mere presence of `has_liquid` for true, and trip over a null. */
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

/** Devices look for the one name that they know their language by. */
function byLanguage(variants: Record<string, string>): Record<string, string> {
  const named: Record<string, string> = { ...variants, default: variants.en as string }
  for (const name of AMBIGUOUS_LANGUAGES) {
    const id = matchLanguage(variants, name)
    if (id !== undefined) named[name] = id
  }
  return named
}
