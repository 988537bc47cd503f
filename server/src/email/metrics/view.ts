// The representation of the counts: by inbox provider for one domain, and as rates for a whole app.

import { type DateTime, readDateTime } from '../../lib/date-time.ts'
import { AppError, invalid, type Problem } from '../../lib/errors.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { findEmailRoute, isCatchRoute } from '../find-route.ts'
import { inboxProviders, readDomain } from '../inbox-providers/providers.ts'
import type { EmailMetricsContext } from './context.ts'
import { type EmailRates, readRates } from './read-rates.ts'
import type { ProviderMetrics, ProviderMetricsQuery, Reputation } from './schema.ts'
import { type ProviderSums, sumByProvider } from './store.ts'
import { coverWindow, type MetricsWindow } from './time-unit.ts'

const DAY_MS = 86_400_000
const MAX_DAYS_BACK = 365

export async function viewProviderMetrics(
  ctx: EmailMetricsContext,
  appId: AppId,
  query: ProviderMetricsQuery,
  now: Date,
): Promise<ProviderMetrics[]> {
  const window = readWindow(query, now)
  const domain = readDomain(query.domain)
  if (domain === undefined) return []
  const sums = await sumByProvider(
    ctx.db,
    appId,
    domain,
    coverWindow(window),
    isCatchRoute(await findEmailRoute(ctx, appId)),
  )
  return sums.filter(hasAny).sort(byPlace).map(metricsOf)
}

function readWindow({ start, end }: ProviderMetricsQuery, now: Date): MetricsWindow {
  const problems: Problem[] = []
  const read = (name: string, text: string) => {
    const time = readDateTime(text)
    if (!time) problems.push(...invalid(`${name} must be a date-time of RFC 3339, as 2030-01-31T09:30:00Z`).problems)
    return time && roundedUp(time)
  }
  const [from, until] = [read('start', start), read('end', end)]
  if (!from || !until) throw new AppError('invalid', ...problems)
  if (from >= until) throw invalid('start must be before end')
  // Compares whole seconds, so that the time the request was under way does not matter.
  const secondsBack = Math.floor((now.getTime() - from.getTime()) / 1_000)
  if (secondsBack > (MAX_DAYS_BACK * DAY_MS) / 1_000)
    throw invalid(`start must be no more than ${MAX_DAYS_BACK} days in the past`)
  return { from, until }
}

/** Events have millisecond precision, so a finer time is rounded up to the next millisecond. */
const roundedUp = ({ at, isCut }: DateTime) => (isCut ? new Date(at.getTime() + 1) : at)

const hasAny = ({ provider: _, ...sums }: ProviderSums) => Object.values(sums).some((digits) => BigInt(digits) > 0n)

const placeOf = (provider: string) => {
  const place = (inboxProviders as readonly string[]).indexOf(provider)
  return place < 0 ? inboxProviders.length : place
}
const byPlace = (a: ProviderSums, b: ProviderSums) => placeOf(a.provider) - placeOf(b.provider)

const metricsOf = (it: ProviderSums): ProviderMetrics => ({
  provider: it.provider,
  metrics: {
    sent: exact(it.sent),
    delivered: exact(it.delivered),
    opened: exact(it.opened),
    clicked: exact(it.clicked),
    unique_opened: exact(it.uniqueOpened),
    unique_clicked: exact(it.uniqueClicked),
    failed: exact(it.failed),
    bounced: exact(it.bounced),
    complained: exact(it.complained),
  },
})

/** Writes the integer into JSON digit by digit, because a number beyond 2^53 would be rounded. */
const exact = (digits: string) => (JSON as unknown as { rawJSON(text: string): number }).rawJSON(digits)

export async function viewReputation(db: Db, appId: AppId, now: Date): Promise<Reputation> {
  const { last_24_hours, last_7_days, last_30_days } = await readRates(db, appId, now)
  const shown = ({ bounce_rate, complaint_rate }: EmailRates) => ({ bounce_rate, complaint_rate })
  return {
    last_24_hours: shown(last_24_hours),
    last_7_days: shown(last_7_days),
    last_30_days: shown(last_30_days),
  }
}
