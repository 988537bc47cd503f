// Segments: how long View segment takes to count, against a count written by hand for the same data and sent straight to
// PostgreSQL, interleaved, median of the rounds; and what a page costs at the beginning and at the end of an audience.

import pg from 'pg'
import { createLog } from '../../server/src/lib/log.ts'
import { findInRange, findRangeEnd } from '../../server/src/segments/audience.ts'
import { readFilters } from '../../server/src/segments/filters/read-filters.ts'
import { indexTags } from '../../server/src/segments/index-tags.ts'
import { createPool, type Pool } from '../../server/src/storage/db.ts'
import { connectEmbedded } from '../../server/src/storage/embedded/attach.ts'
import { type Carillon, headersOf, startCarillon } from '../kit/processes.ts'
import { median, type Row, readOptions, report, round } from '../kit/report.ts'
import { seedUsers } from '../kit/seed.ts'

const options = readOptions({ rounds: 9, small: 100_000, large: 1_000_000 })
const RANGE = 10_000

const TAGS = `jsonb_build_object(
  'plan', (array['free', 'silver', 'gold'])[1 + n % 3], 'city', 'city ' || n % 40, 'level', (n % 100)::text,
  'team', 'team ' || n % 7, 'seen', n::text)`

type Case = { name: string; filters: object[]; byHand: string }

const cases: Case[] = [
  {
    name: 'two tags with values',
    filters: [
      { field: 'tag', key: 'plan', relation: '=', value: 'gold' },
      { field: 'tag', key: 'city', relation: '=', value: 'city 7' },
    ],
    byHand: `u.tags ->> 'plan' = 'gold' and u.tags ->> 'city' = 'city 7'`,
  },
  {
    name: 'a tag with a value and one above a number',
    filters: [
      { field: 'tag', key: 'plan', relation: '=', value: 'gold' },
      { field: 'tag', key: 'level', relation: '>', value: '49' },
    ],
    byHand: `u.tags ->> 'plan' = 'gold' and (u.tags ->> 'level')::numeric > 49`,
  },
]

const timed = async <Result>(run: () => Promise<Result>): Promise<{ ms: number; result: Result }> => {
  const began = performance.now()
  const result = await run()
  return { ms: performance.now() - began, result }
}

async function makeSegment(carillon: Carillon, { name, filters }: Case): Promise<string> {
  const response = await fetch(`${carillon.url}/apps/${carillon.appId}/segments`, {
    method: 'POST',
    headers: headersOf(carillon),
    body: JSON.stringify({ name, filters }),
  })
  if (response.status !== 201) throw new Error(`no segment: ${response.status} ${await response.text()}`)
  return ((await response.json()) as { id: string }).id
}

async function count(carillon: Carillon, id: string): Promise<number> {
  const response = await fetch(`${carillon.url}/apps/${carillon.appId}/segments/${id}`, {
    headers: headersOf(carillon),
  })
  if (response.status !== 200) throw new Error(`no count: ${response.status} ${await response.text()}`)
  return ((await response.json()) as { subscriber_count: number }).subscriber_count
}

async function measureCounts(
  carillon: Carillon,
  client: pg.Client,
  segments: { it: Case; id: string }[],
  what: string,
  goal: number | null,
): Promise<Row[]> {
  const rows: Row[] = []
  for (const { it, id } of segments) {
    const text = `select count(*) from subscriptions s join users u on u.app_id = s.app_id and u.id = s.user_id
      where s.app_id = $1 and ${it.byHand}`
    const byHand = async () => Number((await client.query(text, [carillon.appId])).rows[0].count)
    const ours: number[] = []
    const theirs: number[] = []
    for (let n = 0; n < options.rounds; n++) {
      const hand = await timed(byHand)
      const own = await timed(() => count(carillon, id))
      if (own.result !== hand.result) throw new Error(`${it.name}: ${own.result} counted, ${hand.result} by hand`)
      // The first of each warms up.
      if (n === 0) continue
      theirs.push(hand.ms)
      ours.push(own.ms)
    }
    rows.push({
      name: `count of ${it.name}, ${what}`,
      ratio: round(median(theirs) / median(ours)),
      goal,
      ms: round(median(ours), 1),
      byHandMs: round(median(theirs), 1),
    })
    console.log(JSON.stringify(rows.at(-1)))
  }
  return rows
}

/** A page of everybody whom the first case means, at the beginning and at the end. */
async function measurePages(db: Pool, appId: string, users: number): Promise<Row> {
  const scope = { appId, now: new Date() }
  const { tree } = readFilters((cases[0] as Case).filters)
  const lastStart = await findRangeEnd(db, scope, undefined, users - RANGE)
  const page = (after: string | undefined) =>
    timed(async () => findInRange(db, tree, scope, { after, upTo: await findRangeEnd(db, scope, after, RANGE) }))
  const first: number[] = []
  const last: number[] = []
  for (let n = 0; n <= options.rounds; n++) {
    const [atFirst, atLast] = [await page(undefined), await page(lastStart)]
    if (n === 0) continue
    first.push(atFirst.ms)
    last.push(atLast.ms)
  }
  return {
    name: `page of ${RANGE} subscriptions: the first against the last, ${users} users`,
    ratio: round(median(first) / median(last)),
    goal: 0.8,
    ms: round(median(last), 1),
  }
}

const carillon = await startCarillon()
try {
  const database = await connectEmbedded({ dataDir: carillon.dataDir, log: createLog('warn') })
  const client = new pg.Client(database.connection)
  // When something fails, the server goes down before its clients, and what failed is to be seen.
  client.on('error', () => {})
  await client.connect()
  const db = createPool({ connection: database.connection, size: 2, statementTimeoutMs: 600_000 })
  const segments: { it: Case; id: string }[] = []
  for (const it of cases) segments.push({ it, id: await makeSegment(carillon, it) })

  const rows: Row[] = []
  let seeded = 0
  for (const users of [...new Set([options.small, options.large])]) {
    console.log(`\nseeding ${users} users …`)
    await seedUsers(database.connection, carillon.appId, seeded, users, { tags: TAGS })
    seeded = users
    rows.push(...(await measureCounts(carillon, client, segments, `${users} users`, 0.5)))
    rows.push(await measurePages(db, carillon.appId, users))
  }
  await indexTags(db, { minUsers: 1 })
  rows.push(...(await measureCounts(carillon, client, segments, `${seeded} users, both with indexes`, null)))
  await report(rows, options.json)
  await client.end()
  await db.close()
  await database.close()
} finally {
  await carillon.stop()
}
