// How the deliveries of a message stand, in the words of the interface and in our own.

import { ownProperty } from '../../lib/own-property.ts'
import type { ContentChannel } from '../../templates/content.ts'
import { type DeliveryState, deliveryStates } from '../delivery.ts'
import type { MessageState } from '../message.ts'
import { CAPPED, cannotGo, DELETED, isGone, UNSUBSCRIBED } from '../reasons.ts'
import type { MessageCount } from '../store.ts'

/** The interface's names for types of subscription; the rest are ours. Edge is told apart from Chrome by nobody. */
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

const sum = (counts: readonly Counted[], test: (it: Counted) => boolean) =>
  counts.reduce((total, it) => (test(it) ? total + it.count : total), 0)
const inState = (counts: readonly Counted[], ...states: string[]) => sum(counts, ({ state }) => states.includes(state))

/** Nobody was there: known before it was sent, or found out by sending. */
const isFailed = ({ state, reason }: Counted) =>
  (state === 'skipped' && (reason === UNSUBSCRIBED || reason === DELETED)) || (state === 'failed' && isGone(reason))
const isErrored = ({ state, reason }: Counted) =>
  state === 'unknown' ||
  state === 'expired' ||
  (state === 'failed' && !isGone(reason)) ||
  (state === 'skipped' && cannotGo(reason))
/** Left out on purpose: by a rule, or because the message was canceled. With the other counts, these are all recipients. */
const isLeftOut = (it: Counted) =>
  (it.state === 'skipped' && !isFailed(it) && !isErrored(it)) || it.state === 'canceled'

const summary = (counts: readonly Counted[]) => ({
  successful: inState(counts, 'sent'),
  failed: sum(counts, isFailed),
  errored: sum(counts, isErrored),
  skipped: sum(counts, isLeftOut),
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

/** Of all that one channel brought, in the words of the platforms. */
export const channelStats = (channel: ContentChannel, counts: readonly Counted[]) =>
  platformStats(channel === 'push' ? '' : channel, counts)

export function countsObject(state: MessageState, counts: readonly MessageCount[]) {
  const byPlatform = Map.groupBy(counts, ({ platform }) => ownProperty(PLATFORM_NAMES, platform) ?? platform)
  // Nobody knows yet how many there will be.
  const isOpen = state === 'scheduled' || state === 'expanding'
  return {
    ...summary(counts),
    remaining: isOpen ? null : inState(counts, 'pending'),
    fcap_status: capped(counts) > 0 ? 'capped' : 'uncapped',
    platform_delivery_stats: Object.fromEntries(
      [...byPlatform].map(([name, some]) => [name, platformStats(name, some)]),
    ),
    delivery: { state, ...ledger(counts) },
  }
}

/** Every delivery is in one state, for one reason; they add up. What is counted beside the states is left out. */
function ledger(counts: readonly MessageCount[]) {
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
