// What the past says about the future: how many users do an event or come back within a time, how many messages are received,
// opened and clicked.

import { countDoers, findNewestEvents } from '../../events/frequency-store.ts'
import type { AppId } from '../../lib/ids.ts'
import { countByChannel } from '../../messages/counts/rate-store.ts'
import type { Db } from '../../storage/db.ts'
import { countActiveUsers, countUsers } from '../../users/presence-store.ts'
import { conditionalBranchesOf, type JourneyNode, templateChannelOf, waitConditionsOf } from '../nodes/kinds.ts'
import { matchesEvent } from '../nodes/match-event.ts'
import type { BranchCondition, EventMatch, MessageAction, NodeId, TemplateChannel } from '../nodes/node.ts'
import type { CompiledJourney } from '../runs/compile-journey.ts'
import { type Curve, LONGEST, scaleCurve, TIMES } from './curve.ts'
import { DAY_MS, PAST_DAYS } from './options.ts'

export type Rates = {
  /** By nameOf. */
  events: Map<string, { name: string; curve: Curve }>
  sessions: Curve | undefined
  /** By channel and action. `sent`: the deliveries that it was learned from. */
  actions: Map<string, { channel: TemplateChannel; action: MessageAction; share: number; sent: number }>
  users: number
}

/** Two conditions on the same event are the same question. */
export const nameOf = ({ name, attributes }: EventMatch) => JSON.stringify([name, attributes])
export const actionName = (channel: TemplateChannel, action: MessageAction) => `${channel} ${action}`

const conditionsOf = (node: JourneyNode): BranchCondition[] =>
  conditionalBranchesOf(node).map(({ condition }) => condition)

export async function estimateRates(db: Db, appId: AppId, journey: CompiledJourney, now: Date): Promise<Rates> {
  const past = { after: new Date(now.getTime() - PAST_DAYS * DAY_MS), upTo: now }
  const events = askedEvents(journey)
  const isSessionAsked = journey.exit?.onSession ?? false
  const actions = askedActions(journey)
  const rates: Rates = { events: new Map(), sessions: undefined, actions: new Map(), users: 0 }
  if (events.length > 0 || isSessionAsked) rates.users = await countUsers(db, appId)
  const times = timesOf(journey).map((seconds) => ({ seconds, after: new Date(now.getTime() - seconds * 1_000) }))
  const curveOf = (found: readonly { seconds: number; users: number }[]): Curve =>
    times.map(({ seconds }) => {
      const did = found.find((it) => it.seconds === seconds)?.users ?? 0
      // Events may be told of users who are gone by now.
      return { seconds, share: rates.users === 0 ? 0 : Math.min(1, did / rates.users) }
    })
  if (events.length > 0) {
    const names = [...new Set(events.map(({ name }) => name))]
    const found = await countDoers(db, appId, names, times, past)
    for (const event of events) {
      const curve = curveOf(found.filter(({ name }) => name === event.name))
      const meant = await shareMeant(db, appId, event, past)
      rates.events.set(nameOf(event), { name: event.name, curve: scaleCurve(curve, meant) })
    }
  }
  if (isSessionAsked) rates.sessions = curveOf(await countActiveUsers(db, appId, times, now))
  if (actions.length > 0) {
    const counts = await countByChannel(db, appId, past)
    for (const { channel, action } of actions) {
      const count = (fact: string) => counts.find((it) => it.channel === channel && it.fact === fact)?.count ?? 0
      const sent = count('sent')
      const share = sent === 0 ? 0 : Math.min(1, countAction(action, count) / sent)
      rates.actions.set(actionName(channel, action), { channel, action, share, sent })
    }
  }
  return rates
}

/** What was clicked was opened, and what was opened was received, whoever told of it. */
function countAction(action: MessageAction, count: (fact: string) => number): number {
  const opened = Math.max(count('opened'), count('clicked'))
  if (action === 'clicked') return count('clicked')
  if (action === 'opened') return opened
  return Math.max(count('received'), count('delivered'), count('provider_successful'), opened)
}

function askedEvents({ nodes, exit }: CompiledJourney): EventMatch[] {
  const asked = nodes.flatMap(conditionsOf).filter((it) => it.kind === 'event_trigger')
  const matches: EventMatch[] = [
    ...asked,
    ...(exit?.eventName === undefined ? [] : [{ name: exit.eventName, attributes: [] }]),
  ]
  return [...new Map(matches.map((it) => [nameOf(it), it])).values()]
}

function askedActions({ nodes }: CompiledJourney): { channel: TemplateChannel; action: MessageAction }[] {
  const channels = new Map(
    nodes.flatMap(({ id, kind }): [NodeId, TemplateChannel][] => {
      const channel = templateChannelOf(kind)
      return channel ? [[id, channel]] : []
    }),
  )
  return nodes.flatMap(conditionsOf).flatMap((it) => {
    const channel = it.kind === 'on_notification_action' ? channels.get(it.sending_node_id) : undefined
    return it.kind === 'on_notification_action' && channel ? [{ channel, action: it.action }] : []
  })
}

/** The waits of the journey too, so that what happens within one of them is counted and not guessed. */
function timesOf({ nodes }: CompiledJourney): number[] {
  const waits = nodes.flatMap((node) => waitConditionsOf(node)?.expiration?.duration_seconds ?? [])
  return [...new Set([...TIMES, ...waits.filter((seconds) => seconds <= LONGEST)])].sort((a, b) => a - b)
}

/** Enough to tell a share of a hundredth. */
const LOOKED_AT = 2_000

async function shareMeant(db: Db, appId: AppId, event: EventMatch, past: { after: Date; upTo: Date }): Promise<number> {
  if (event.attributes.length === 0) return 1
  const found = await findNewestEvents(db, appId, event.name, past, LOOKED_AT)
  const meant = found.filter(({ properties }) => matchesEvent(event, { name: event.name, properties }))
  return found.length === 0 ? 0 : meant.length / found.length
}
