// Email metrics: what the operation takes for a year of millions of events with all inbox providers, against the same operation
// on a domain of which it reads one row, interleaved, median of the rounds.

import pg from 'pg'
import { inboxProviders } from '../../server/src/email/inbox-providers/providers.ts'
import { emailFacts } from '../../server/src/email/metrics/facts.ts'
import { createLog } from '../../server/src/lib/log.ts'
import { createPool } from '../../server/src/storage/db.ts'
import { connectEmbedded } from '../../server/src/storage/embedded/attach.ts'
import { addMonths } from '../../server/src/storage/partitions.ts'
import { type Carillon, headersOf, startCarillon } from '../kit/processes.ts'
import { median, type Row, readOptions, report, round } from '../kit/report.ts'

const options = readOptions({ events: 10_000_000, rounds: 200 })
const [LARGE, SMALL] = ['large.example.com', 'small.example.com']
const PARTS = 5
const DAY_MS = 86_400_000
/** Cuts an hour, a day and a month in two at both ends: the dearest window there is. */
const end = new Date(Math.floor(Date.now() / 3_600_000) * 3_600_000 - 1_234_567)
const start = new Date(end.getTime() - 364 * DAY_MS + 777)

const facts = emailFacts.join(', ')
const sums = emailFacts.map((fact) => `sum(${fact})`).join(', ')

/** One row for each event, as opens and clicks are written, spread evenly over the window, the providers and the parts. */
async function seed(client: pg.Client, appId: string) {
  const stepMs = (end.getTime() - start.getTime()) / options.events
  await client.query(
    `insert into email_domains (app_id, domain, state, created_at, updated_at)
     select $1, unnest($2::text[]), 'active', now(), now()`,
    [appId, [LARGE, SMALL]],
  )
  await client.query(
    `insert into email_instants (app_id, domain, at, provider, part, ${facts})
     select $1, $2, $3::timestamptz + make_interval(secs => floor(n * $4::float8) / 1000),
       ($5::text[])[1 + n % 27], n / 27 % ${PARTS}, ${emailFacts.map((_, i) => `(n / 135 % 9 = ${i})::int`).join(', ')}
     from generate_series(0::bigint, $6::bigint - 1) n
     on conflict do nothing`,
    [appId, LARGE, start, stepMs, inboxProviders, options.events],
  )
  await client.query(
    `insert into email_instants (app_id, domain, at, provider, part, sent) values ($1, $2, $3, 'gmail', 0, 1)`,
    [appId, SMALL, new Date((start.getTime() + end.getTime()) / 2)],
  )
  for (const unit of ['hour', 'day', 'month'])
    await client.query(
      `insert into email_rollups (app_id, domain, unit, starts_at, provider, part, ${facts})
       select app_id, domain, '${unit}', date_trunc('${unit}', at, 'UTC'), provider, part, ${sums}
       from email_instants group by 1, 2, 4, 5, 6 order by 1, 2, 4, 5, 6`,
    )
  await client.query('vacuum analyze')
}

type Answer = { providers: { provider: string; metrics: Record<string, number> }[] }

async function ask(carillon: Carillon, domain: string): Promise<{ ms: number; answer: Answer }> {
  const query = new URLSearchParams({ domain, start: start.toISOString(), end: end.toISOString() })
  const began = performance.now()
  const response = await fetch(`${carillon.url}/apps/${carillon.appId}/email_analytics/provider_metrics?${query}`, {
    headers: headersOf(carillon),
  })
  const answer = (await response.json()) as Answer
  const ms = performance.now() - began
  if (response.status !== 200) throw new Error(`no metrics: ${response.status} ${JSON.stringify(answer)}`)
  return { ms, answer }
}

/** A fast answer that is wrong is worth nothing. */
async function check(client: pg.Client, carillon: Carillon) {
  const { answer } = await ask(carillon, LARGE)
  const { rows } = await client.query(
    `select provider, ${emailFacts.map((fact) => `sum(${fact})::int as ${fact}`).join(', ')} from email_instants
     where app_id = $1 and domain = $2 and at >= $3 and at < $4 group by provider`,
    [carillon.appId, LARGE, start, end],
  )
  const expected = new Map(rows.map(({ provider, ...metrics }) => [provider, JSON.stringify(metrics)]))
  if (answer.providers.length !== expected.size) throw new Error('providers are missing')
  for (const { provider, metrics } of answer.providers)
    if (JSON.stringify(metrics) !== expected.get(provider)) throw new Error(`${provider} is counted wrongly`)
}

const carillon = await startCarillon()
try {
  const database = await connectEmbedded({ dataDir: carillon.dataDir, log: createLog('warn') })
  const client = new pg.Client(database.connection)
  // When something fails, the server goes down before its clients, and what failed is to be seen.
  client.on('error', () => {})
  await client.connect()
  const db = createPool({ connection: database.connection, size: 1 })
  await addMonths(db, 'email_instants', start, end)
  console.log(`\nseeding ${options.events} events …`)
  await seed(client, carillon.appId)
  await check(client, carillon)

  const [large, small]: [number[], number[]] = [[], []]
  for (let n = 0; n < options.rounds + 20; n++) {
    const [ours, one] = [await ask(carillon, LARGE), await ask(carillon, SMALL)]
    if (one.answer.providers.length !== 1) throw new Error('the one row is not there')
    // The first ones warm up.
    if (n < 20) continue
    large.push(ours.ms)
    small.push(one.ms)
  }
  const rows: Row[] = [
    {
      name: `provider metrics of a year, ${inboxProviders.length} providers, ${options.events} events, against one row`,
      ratio: round(median(small) / median(large)),
      goal: 0.1,
      ms: round(median(large), 1),
      oneRowMs: round(median(small), 1),
    },
  ]
  await report(rows, options.json)
  await db.close()
  await client.end()
  await database.close()
} finally {
  await carillon.stop()
}
