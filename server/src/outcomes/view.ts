// Shows how often outcomes occurred recently and the sum of their weights, for an app or for one message.

import { invalid } from '../lib/errors.ts'
import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import { typeOfDeviceNumber } from '../users/subscriptions/subscription.ts'
import { CLICK, CONFIRMED_DELIVERY, hourOf } from './measure.ts'
import type { OutcomeObject, OutcomesQuery } from './schema.ts'
import { sumDeliveryReports, sumMeasures } from './store.ts'

type ViewContext = { db: Db; now: () => Date }
type Asked = { name: string; aggregation: 'count' | 'sum' }

const HOUR_MS = 3_600_000
const RANGES = { '1h': HOUR_MS, '1d': 24 * HOUR_MS, '1mo': 31 * 24 * HOUR_MS }
const MAX_NAMES = 50
/** Reported with deliveries, and counted with them. */
const REPORTS = { [CLICK]: 'clicked', [CONFIRMED_DELIVERY]: 'received' }

/** For a whole app. At least one name is required. */
export async function viewOutcomesOfApp(
  ctx: ViewContext,
  appId: AppId,
  query: OutcomesQuery,
): Promise<OutcomeObject[]> {
  const asked = readNames(query)
  if (asked.length === 0) throw invalid('outcome_names is required')
  return answerTo(ctx, appId, asked, query, undefined)
}

/** For the view of one message. Empty when no name is requested. */
export async function viewOutcomesOfMessage(
  ctx: ViewContext,
  appId: AppId,
  messageId: string,
  query: OutcomesQuery,
): Promise<OutcomeObject[]> {
  const asked = readNames(query)
  return asked.length === 0 ? [] : answerTo(ctx, appId, asked, query, messageId)
}

async function answerTo(
  { db, now }: ViewContext,
  appId: AppId,
  asked: Asked[],
  { outcome_time_range = '1h', outcome_platforms, outcome_attribution = 'total' }: OutcomesQuery,
  messageId: string | undefined,
): Promise<OutcomeObject[]> {
  // Counts are kept by the hour, so the whole hour in which the range begins is included.
  const since = hourOf(new Date(now().getTime() - RANGES[outcome_time_range]))
  const names = [...new Set(asked.map(({ name }) => name))]
  const question = { messageId, since, platforms: readPlatforms(outcome_platforms) }
  const attribution = outcome_attribution === 'total' ? undefined : outcome_attribution
  const sums = await sumMeasures(db, appId, { ...question, names, attribution })
  // Clicks and receipts belong to the message itself, so they count as direct.
  const isDirect = attribution === undefined || attribution === 'direct'
  const reports =
    isDirect && names.some((name) => Object.hasOwn(REPORTS, name)) ? await sumDeliveryReports(db, appId, question) : []
  const byName = new Map<string, { count: number; sum: number }>(sums.map((it) => [it.name, it]))
  for (const [name, state] of Object.entries(REPORTS))
    byName.set(name, { count: reports.find((it) => it.state === state)?.count ?? 0, sum: 0 })
  return asked.map(({ name, aggregation }) => ({ id: name, value: byName.get(name)?.[aggregation] ?? 0, aggregation }))
}

function readNames(query: OutcomesQuery): Asked[] {
  const given = [...(query.outcome_names ?? []), ...(query['outcome_names[]'] ?? [])]
  const texts = given.flatMap((list) => list.split(',')).filter((text) => text.trim() !== '')
  if (texts.length > MAX_NAMES) throw invalid(`outcome_names must have at most ${MAX_NAMES} names`)
  return texts.map((text) => {
    const [, name, aggregation] = /^(.+)\.(count|sum)$/s.exec(text.trim()) ?? []
    if (name === undefined)
      throw invalid(`outcome_names: "${text}" must be the name of an outcome, followed by .count or .sum`)
    return { name, aggregation: aggregation as Asked['aggregation'] }
  })
}

function readPlatforms(text: string | undefined): string[] | undefined {
  if (text === undefined || text === '') return undefined
  return text.split(',').map((number) => {
    const type = /^\d{1,2}$/.test(number.trim()) ? typeOfDeviceNumber(Number(number)) : undefined
    if (!type) throw invalid(`outcome_platforms: "${number}" is no device type`)
    return type
  })
}
