// What a dry run took for granted, in sentences for whoever plans the journey.

import { hasLiquid } from '../../templates/render/source.ts'
import { PAST_DAYS, pastDays, type SimulationOptions } from './options.ts'
import type { SampleSize } from './population.ts'
import type { Rates } from './rates.ts'
import type { Simulation } from './simulate-users.ts'

export function describeAssumptions(order: SimulationOptions, trip: Simulation, sampled: SampleSize): string[] {
  const { journey, rates, judge } = trip
  return [
    ...onAudience(order, trip, sampled),
    ...onRates(rates),
    'Users stay as they are in the snapshot, but for the tags that the journey sets.',
    ...(judge.isTimed
      ? ['Segments that look at the time are judged once for each virtual day, at its beginning.']
      : []),
    ...(journey.nodes.some(({ kind, ...it }) => kind === 'tag' && setsLiquid(it))
      ? ['Tags whose value holds Liquid are not taken into account by segments.']
      : []),
    ...(journey.reentrySeconds === undefined
      ? []
      : ['Users enter again only if they are in the audience when the time of the re-entry rule is over.']),
  ]
}

const setsLiquid = (it: object) =>
  'assignments' in it && Object.values(it.assignments as Record<string, string>).some(hasLiquid)

function onAudience(
  { journey, days }: SimulationOptions,
  { judge }: Simulation,
  { looked, total }: SampleSize,
): string[] {
  const { audience } = journey.document
  const sample =
    looked < total ? [`${looked} of ${total} were walked through, a fair sample; all counts are of the sample.`] : []
  if (audience.kind === 'event_trigger')
    return [
      `Entries are the events "${audience.name}" of the last ${pastDays(days)} days (${total}), at the same distance from the start.`,
      ...sample,
    ]
  if (!judge.audience) return ['Nobody is in the audience: it names no segment, or one that is not there any more.']
  return [
    audience.future_additions_only
      ? 'Only users who join the segments after the start will enter, and nobody knows who they are: the users of today are walked through as if all of them joined at the start.'
      : 'Everybody who is in the audience at the start enters then; those who join it later are not foreseen.',
    ...sample,
  ]
}

const percent = (share: number) => `${Math.round(share * 1_000) / 10} %`

function onRates({ events, sessions, actions }: Rates): string[] {
  const withinMonth = (curve: readonly { share: number }[]) => percent(curve.at(-1)?.share ?? 0)
  return [
    ...[...events.values()].map(({ name, curve }) =>
      (curve.at(-1)?.share ?? 0) === 0
        ? `Nobody did "${name}" in the last ${PAST_DAYS} days, so nobody does it in the dry run.`
        : `Users do "${name}" as often as they did in the last ${PAST_DAYS} days: ${withinMonth(curve)} within ${PAST_DAYS} days. Who does it, and when, is drawn.`,
    ),
    ...(sessions
      ? [
          `Users come back as often as they did in the last ${PAST_DAYS} days: ${withinMonth(sessions)} within ${PAST_DAYS} days. Who does, and when, is drawn.`,
        ]
      : []),
    ...[...actions.values()].map(({ channel, action, share, sent }) =>
      sent === 0
        ? `No ${channel} message was sent in the last ${PAST_DAYS} days, so none is ${action} in the dry run.`
        : `${percent(share)} of ${channel} messages are ${action}, as in the last ${PAST_DAYS} days (${sent} deliveries)${action === 'received' ? '' : ', within a day of being sent'}. Whose is drawn.`,
    ),
  ]
}
