import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { until } from '../process/launch.ts'
import { isFull } from './ledger.ts'
import { expectCounted, openRig, throwDice, untilDone, untilSettled } from './rig.ts'

const MESSAGES = isFull ? 2_000 : 200
const SPAN_MS = isFull ? 20_000 : 6_000
/** Until all of them are taken in. */
const LEAD_MS = isFull ? 20_000 : 5_000
/** Of those that come due when all is well again. */
const LATER = MESSAGES / 2
/** Two seconds are promised, which a full run on a quiet machine checks with room for noise. */
const MOST_LATE_MS = isFull ? 10_000 : 60_000

test('messages that come due while no server is there go out once, none before its time, when there is one again', async () => {
  const dice = throwDice('schedules')
  const rig = await openRig({ recipients: 30 })
  const beginsAt = Date.now() + LEAD_MS
  const due = new Map<string, number>()
  const bring = async (n: number, from: number) => {
    const at = from + dice.between(0, SPAN_MS)
    const answer = await rig.create(rig.nodes[n % 2]?.url as string, {
      include_subscription_ids: [dice.pick(rig.recipients).id],
      contents: { en: 'Hello' },
      send_after: new Date(at).toISOString(),
    })
    expect(answer.status).toBe(200)
    due.set(answer.body.id, at)
  }
  const bringAll = async (count: number, from: number) => {
    for (let n = 0; n < count; n += 20) await Promise.all(Array.from({ length: 20 }, (_, i) => bring(n + i, from)))
  }
  await bringAll(MESSAGES, beginsAt)

  await until(async () => (await rig.taken()).length > 0, LEAD_MS + 60_000)
  await Promise.all(rig.nodes.map(({ server }) => server.stop()))
  const downFrom = Date.now()
  const sentBefore = (await rig.taken()).length
  await pause(SPAN_MS / 2)
  expect((await rig.taken()).length).toBe(sentBefore)
  await Promise.all(rig.nodes.map((node) => node.start()))
  const upFrom = Date.now()
  await pause(Math.max(0, beginsAt + SPAN_MS - Date.now()))
  await untilSettled(rig)
  const againFrom = Date.now() + LEAD_MS
  await bringAll(LATER, againFrom)
  await pause(Math.max(0, againFrom + SPAN_MS - Date.now()))
  await untilSettled(rig)

  const taken = await rig.taken()
  expect(taken.map(({ message_id }) => message_id).sort()).toEqual([...due.keys()].sort())
  const late = taken.map(({ at, message_id }) => ({ dueAt: due.get(message_id as string) as number, at }))
  expect(late.filter(({ at, dueAt }) => at < dueAt)).toEqual([])
  // What came due while nobody was there is late from when somebody is; nothing is promised of it.
  const missed = sortedMs(late.flatMap(({ at, dueAt }) => (at >= upFrom && dueAt < upFrom ? [at - upFrom] : [])))
  const onTime = sortedMs(late.flatMap(({ at, dueAt }) => (dueAt >= againFrom ? [at - dueAt] : [])))
  console.log(`schedules: ${sentBefore} of ${MESSAGES} sent, then none for ${upFrom - downFrom} ms, then all`)
  console.log(`schedules: late after that by ${inWords(missed)}; those of later by ${inWords(onTime)}`)
  expect(onTime).toHaveLength(LATER)
  expect(p(onTime, 0.99)).toBeLessThanOrEqual(MOST_LATE_MS)
  await untilDone(rig)
  await expectCounted(rig)
})

const sortedMs = (list: number[]) => list.toSorted((a, b) => a - b)
const p = (sorted: readonly number[], share: number) => sorted[Math.ceil(sorted.length * share) - 1] ?? 0
const inWords = (sorted: readonly number[]) => `${p(sorted, 0.5)} ms (p50), ${p(sorted, 0.99)} ms (p99)`
