// Sums up the deliveries of a message, in the fields of the public API and in fields of our own.

import { ownProperty } from '../../lib/own-property.ts'
import type { ContentChannel } from '../../templates/content.ts'
import { type DeliveryState, deliveryStates } from '../delivery.ts'
import type { MessageState } from '../message.ts'
import { CAPPED, cannotGo, DELETED, isGone, UNSUBSCRIBED } from '../reasons.ts'
import type { MessageCount } from '../store.ts'

/** The public API's names for types of subscription; the others are ours. Edge is not distinguished from Chrome. */
const PLATFORM_NAMES: Record<string, string> = {
  iOSPush: 'ios',
  AndroidPush: 'android',
  ChromePush: 'chrome_web_push',
  FirefoxPush: 'firefox_web_push',
  SafariPush: 'safari_web_push',
  SafariLegacyPush: 'safari_web_push',
  SMS: 'sms',
  Email: 'email',
  macOSPush: 'macos',
  HuaweiPush: 'huawei',
  FireOSPush: 'amazon',
  WindowsPush: 'windows',
  ChromeExtensionPush: 'chrome_extension',
  WindowsPhonePush: 'windows_phone',
  AlexaPush: 'alexa',
}

type Counted = Pick<MessageCount, 'state' | 'reason' | 'count'>

const sum = (counts: readonly Counted[], test: (entry: Counted) => boolean) =>
  counts.reduce((total, entry) => (test(entry) ? total + entry.count : total), 0)
const inState = (counts: readonly Counted[], ...states: string[]) => sum(counts, ({ state }) => states.includes(state))

/** The recipient was gone before sending, or found gone by sending. */
const isFailed = ({ state, reason }: Counted) =>
  (state === 'skipped' && (reason === UNSUBSCRIBED || reason === DELETED)) || (state === 'failed' && isGone(reason))
const isErrored = ({ state, reason }: Counted) =>
  state === 'unknown' ||
  state === 'expired' ||
  (state === 'failed' && !isGone(reason)) ||
  (state === 'skipped' && cannotGo(reason))
/** Skipped by a rule, or canceled. With the other counts, this covers all recipients. */
const isSkipped = (entry: Counted) =>
  (entry.state === 'skipped' && !isFailed(entry) && !isErrored(entry)) || entry.state === 'canceled'

const summary = (counts: readonly Counted[]) => ({
  successful: inState(counts, 'sent'),
  failed: sum(counts, isFailed),
  errored: sum(counts, isErrored),
  skipped: sum(counts, isSkipped),
  converted: inState(counts, 'clicked'),
  received: inState(counts, 'received'),
})

const capped = (counts: readonly Counted[]) =>
  sum(counts, ({ state, reason }) => state === 'skipped' && reason === CAPPED)

function platformStats(name: string, counts: readonly Counted[]) {
  const stats = { ...summary(counts), frequency_capped: capped(counts) }
  if (name === 'sms')
    return {
      ...stats,
      provider_successful: inState(counts, 'provider_successful'),
      provider_failed: inState(counts, 'provider_failed'),
      provider_errored: inState(counts, 'provider_errored'),
    }
  if (name !== 'email') return stats
  return {
    ...stats,
    opened: inState(counts, 'opens'),
    unique_opens: inState(counts, 'opened'),
    clicks: inState(counts, 'clicks'),
    unique_clicks: stats.converted,
    bounced: inState(counts, 'bounced'),
    reported_spam: inState(counts, 'complained'),
    unsubscribed: inState(counts, 'unsubscribed'),
    delivered: inState(counts, 'delivered'),
    machine_opens: inState(counts, 'machine_opens'),
    machine_clicks: inState(counts, 'machine_clicks'),
  }
}

/** The stats of one channel, in the form of the platforms' stats. */
export const channelStats = (channel: ContentChannel, counts: readonly Counted[]) =>
  platformStats(channel === 'push' ? '' : channel, counts)

export function countsObject(state: MessageState, counts: readonly MessageCount[]) {
  const byPlatform = Map.groupBy(counts, ({ platform }) => ownProperty(PLATFORM_NAMES, platform) ?? platform)
  // The number of deliveries is not known yet.
  const isOpen = state === 'scheduled' || state === 'expanding'
  return {
    ...summary(counts),
    remaining: isOpen ? null : inState(counts, 'pending'),
    fcap_status: capped(counts) > 0 ? 'capped' : 'uncapped',
    platform_delivery_stats: Object.fromEntries(
      [...byPlatform].map(([name, some]) => [name, platformStats(name, some)]),
    ),
    delivery: { state, ...totalsByState(counts) },
  }
}

/** Every delivery is in one state for one reason, so these add up to all deliveries. Facts are left out. */
function totalsByState(counts: readonly MessageCount[]) {
  const states: Record<string, number> = {}
  const reasons: Record<string, Record<string, number>> = {}
  for (const { state, reason, count } of counts) {
    if (!deliveryStates.includes(state as DeliveryState)) continue
    states[state] = (ownProperty(states, state) ?? 0) + count
    if (reason === '') continue
    const ofState = ownProperty(reasons, state) ?? {}
    ofState[reason] = (ownProperty(ofState, reason) ?? 0) + count
    reasons[state] = ofState
  }
  return { states, reasons }
}
