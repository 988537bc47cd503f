import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { until } from '../process/launch.ts'
import { isFull } from './ledger.ts'
import { expectCounted, openRig, throwDice, untilDone, untilSettled } from './rig.ts'

const MESSAGES = isFull ? 2_000 : 200
const SPAN_MS = isFull ? 20_000 : 6_000
/** Until all of them are taken in. */
const LEAD_MS = isFull ? 20_000 : 5_000

test('messages that come due while no server is there go out once, none before its time, when there is one again', async () => {
  const dice = throwDice('schedules')
  const rig = await openRig({ recipients: 30 })
  const beginsAt = Date.now() + LEAD_MS
  const due = new Map<string, number>()
  const bring = async (n: number) => {
    const at = beginsAt + dice.between(0, SPAN_MS)
    const answer = await rig.create(rig.urls[n % 2] as string, {
      include_subscription_ids: [dice.pick(rig.recipients).id],
      contents: { en: 'Hello' },
      send_after: new Date(at).toISOString(),
    })
    expect(answer.status).toBe(200)
    due.set(answer.body.id, at)
  }
  for (let n = 0; n < MESSAGES; n += 20) await Promise.all(Array.from({ length: 20 }, (_, i) => bring(n + i)))

  await until(async () => (await rig.taken()).length > 0, LEAD_MS + 60_000)
  await Promise.all(rig.nodes.map(({ server }) => server.stop()))
  const downFrom = Date.now()
  const sentBefore = (await rig.taken()).length
  await pause(SPAN_MS / 2)
  expect((await rig.taken()).length).toBe(sentBefore)
  await Promise.all(rig.nodes.map((node) => node.start()))
  const upFrom = Date.now()
  await pause(Math.max(0, beginsAt + SPAN_MS - Date.now()))
  await untilSettled(rig, 60_000)

  const taken = await rig.taken()
  expect(taken.map(({ message_id }) => message_id).sort()).toEqual([...due.keys()].sort())
  const late = taken.map(({ at, message_id }) => ({ dueAt: due.get(message_id as string) as number, at }))
  expect(late.filter(({ at, dueAt }) => at < dueAt)).toEqual([])
  console.log(`schedules: ${sentBefore} of ${due.size} sent, then none for ${upFrom - downFrom} ms, then all`)
  await untilDone(rig)
  await expectCounted(rig)
}, 300_000)
