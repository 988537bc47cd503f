// Makers for tests about what became of emails.

import { loadEvents } from '../src/email/metrics/load-events.ts'
import type { Clock } from '../src/lib/clock.ts'
import type { TestApp } from './app.ts'
import { aName } from './users.ts'

export type Line = Record<string, unknown>

export async function* linesOf(lines: readonly (Line | string)[]): AsyncGenerator<string> {
  for (const line of lines) yield typeof line === 'string' ? line : JSON.stringify(line)
}

export type LoadResult = { loaded: number; refused: string[] }

/** Loads lines for the first app, unless they name another, as the command does. */
export async function load(
  app: Pick<TestApp, 'db' | 'tenant'>,
  clock: Clock,
  lines: readonly (Line | string)[],
  more: Partial<Parameters<typeof loadEvents>[0]> = {},
): Promise<LoadResult> {
  const refused: string[] = []
  const own = lines.map((line) => (typeof line === 'string' ? line : { app_id: app.tenant.id, ...line }))
  const { loaded } = await loadEvents({ db: app.db, clock, ...more }, linesOf(own), {
    refuse: (line, reason) => refused.push(`${line}: ${reason}`),
  })
  return { loaded, refused }
}

/** A domain that nobody has used yet. */
export const aDomain = () => `${aName('domain')}.example.com`

export const ZEROS = {
  sent: 0,
  delivered: 0,
  opened: 0,
  clicked: 0,
  unique_opened: 0,
  unique_clicked: 0,
  failed: 0,
  bounced: 0,
  complained: 0,
}

export const metricsPath = (query: Record<string, string>) =>
  `/email_analytics/provider_metrics?${new URLSearchParams(query)}`

/** The counts of each provider that has any, without those that are 0. */
export async function metricsOf(app: TestApp, domain: string, start: string, end: string) {
  const { status, body } = await app.app(metricsPath({ domain, start, end }))
  if (status !== 200) throw new Error(`no metrics: ${status} ${JSON.stringify(body)}`)
  return Object.fromEntries(
    body.providers.map(({ provider, metrics }: { provider: string; metrics: object }) => [
      provider,
      Object.fromEntries(Object.entries(metrics).filter(([, count]) => count !== 0)),
    ]),
  )
}
