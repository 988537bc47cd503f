import { expect, test } from 'vitest'
import { newId } from '../../src/lib/ids.ts'
import { sql } from '../../src/storage/sql.ts'
import { until } from '../process/launch.ts'
import { isFull } from './ledger.ts'
import { openRig, takenOf } from './rig.ts'

const GOOD = isFull ? 1_000 : 100
/** Messages are tried for a day before they are given up; here the day is nearly over. */
const LAST_ATTEMPT = 99
/** How much longer the good may take among the bad than alone. What is alone and quicker than promised counts as on time. */
const MOST_TIMES = 5
const ON_TIME_MS = isFull ? 2_000 : 6_000

/** As no request can write them; as a fault of ours, or somebody with a database client, might. */
const CONTENTS: unknown[] = [
  null,
  5,
  'text',
  [],
  {},
  { contents: null },
  { contents: 5 },
  { contents: { en: null } },
  { contents: { en: { deep: ['er'] } } },
  { contents: { en: 'Hello' }, buttons: 7 },
  { contents: { en: 'Hello' }, data: 'x'.repeat(10_000) },
  { contents: { en: 'x'.repeat(100_000) } },
  { contents: { en: '{% for i in (1..1000000000) %}{% endfor %}' } },
  { contents: { en: '{% for i in (1..100000) %}{{ i }}{{ "x" | append: user }}{% endfor %}' } },
  { contents: { en: '{% if %}{{' } },
  { contents: { en: '{{ "a" | date: "%999999999d" }}' } },
]

const JOBS = [
  { name: 'messages.expand', key: 'not an id' },
  { name: 'messages.deliver', key: 'no/such/line' },
  { name: 'messages.close', key: 'neither' },
  { name: 'messages.nothing', key: 'of the kind' },
]

test('messages and jobs that are nonsense end by themselves, and keep nothing else from being sent', async () => {
  const rig = await openRig({ recipients: 12 })
  const { db } = rig.database
  const { appId } = rig.keys
  const order = (n: number, fields: object = {}) => ({
    include_subscription_ids: [rig.recipients[n % rig.recipients.length]?.id],
    contents: { en: 'Hello' },
    ...fields,
  })
  const created = async (body: object): Promise<string> => {
    const answer = await rig.create(rig.urls[0] as string, body)
    expect(answer.status).toBe(200)
    return answer.body.id
  }

  const later = new Date(Date.now() + 3_600_000)
  const send_after = later.toISOString()
  /** Half of the good waits to be released; the other half comes while that is sent. */
  const waiting = async () => {
    const ids: string[] = []
    for (let n = 0; n < GOOD; n += 2) ids.push(await created(order(n, { send_after })))
    return ids
  }
  /** All that waits is due now. Answers what else came, and how long each of the good took. */
  const release = async (ids: readonly string[]) => {
    const began = Date.now()
    const since = new Map(ids.map((id) => [id, began]))
    await db.transaction(async (db) => {
      await db.query(sql`update messages set send_after = queued_at where app_id = ${appId}`)
      await db.query(sql`update jobs set run_at = ${new Date(began)} where app_id = ${appId}`)
    })
    for (let n = 1; n < GOOD; n += 2) {
      const asked = Date.now()
      since.set(await created(order(n)), asked)
    }
    const takenAt = async () => new Map((await rig.taken()).map(({ message_id, at }) => [message_id as string, at]))
    await until(async () => {
      const taken = await takenAt()
      return [...since.keys()].every((id) => taken.has(id))
    })
    const taken = await takenAt()
    const tookMs = [...since].map(([id, from]) => (taken.get(id) as number) - from).sort((a, b) => a - b)
    return { good: [...since.keys()], p99Ms: tookMs[Math.ceil(tookMs.length * 0.99) - 1] as number }
  }
  // The first time everything is slow, whatever it is.
  await release(await waiting())
  const alone = await release(await waiting())

  // Each to every kind of device, so that no line is without.
  const poison: string[] = []
  for (const content of CONTENTS)
    for (let n = 0; n < 3; n++) {
      const id = await created(order(n, { send_after }))
      await db.query(sql`
        update messages set content = ${JSON.stringify(content)}::jsonb where app_id = ${appId} and id = ${id}`)
      poison.push(id)
    }
  for (const { name, key } of JOBS)
    await db.query(sql`
      insert into jobs (app_id, id, name, key, payload, lane, run_at, enqueued_at, attempts)
      values (${appId}, ${newId()}, ${name}, ${key}, '"nonsense"', 'direct', ${later}, ${later}, ${LAST_ATTEMPT})`)
  // The good among the bad.
  const { good, p99Ms } = await release(await waiting())

  const open = () =>
    db.query<{ id: string }>(sql`
      select m.id from messages m
      where m.app_id = ${appId} and m.id = any(${poison}::uuid[]) and m.state <> 'done' limit 1`)
  await until(async () => (await open()).length === 0)
  const ends = await db.query<{ state: string; reason: string | null; count: number }>(sql`
    select state, reason, count(*)::integer as count from deliveries
    where app_id = ${appId} and message_id = any(${poison}::uuid[]) group by state, reason order by state, reason`)
  console.log(`poison: p99 of others ${p99Ms} ms, alone ${alone.p99Ms} ms; ${JSON.stringify(ends)}`)
  expect(p99Ms).toBeLessThanOrEqual(MOST_TIMES * Math.max(alone.p99Ms, ON_TIME_MS))
  for (const { state } of ends) expect(['sent', 'failed', 'unknown']).toContain(state)
  await until(async () => {
    const sent = (await rig.deliveries()).filter(({ state }) => state === 'sent').map(({ messageId }) => messageId)
    return good.every((id) => sent.includes(id))
  })

  // Reporting an unknown delivery is due five minutes after it and is no nonsense.
  const jobs = () =>
    db.query<{ name: string; key: string; state: string }>(
      sql`select name, key, state from jobs where app_id = ${appId} and name <> 'messages.tell-unknown'`,
    )
  await until(async () => (await jobs()).every(({ state }) => state === 'parked'))
  // Kept for the operator; a line of that name has nothing in it, and that is done.
  expect((await jobs()).map(({ name }) => name).sort()).toEqual([
    'messages.close',
    'messages.expand',
    'messages.nothing',
  ])
  for (const [, count] of await takenOf(rig)) expect(count).toBe(1)
  for (const { url } of rig.nodes) expect((await fetch(`${url}/health`)).status).toBe(200)
})
