import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { sql } from '../../src/storage/sql.ts'
import { isFull } from './ledger.ts'
import { expectCounted, IN_FLIGHT, openRig, takenOf, throwDice, untilSettled } from './rig.ts'

const SCHEDULED = isFull ? 200 : 60
const SPAN_MS = isFull ? 20_000 : 6_000
const BROADCASTS = isFull ? 50 : 5
const AUDIENCE = isFull ? 5_000 : 300
const PROVIDERS = 3

test('a message that is canceled as it comes due is either not sent, or not canceled', async () => {
  const dice = throwDice('cancels')
  const rig = await openRig({ recipients: 30 })
  const beginsAt = Date.now() + 3_000
  const canceled: string[] = []
  const sent: string[] = []
  const race = async (n: number) => {
    const at = beginsAt + Math.round((n * SPAN_MS) / SCHEDULED)
    const { id } = dice.pick(rig.recipients)
    const created = await rig.create(rig.urls[n % 2] as string, {
      include_subscription_ids: [id],
      contents: { en: 'Hello' },
      send_after: new Date(at).toISOString(),
    })
    expect(created.status).toBe(200)
    await pause(Math.max(0, at + dice.between(-50, 50) - Date.now()))
    const { status } = await rig.cancel(dice.pick(rig.urls), created.body.id)
    expect([200, 400]).toContain(status)
    const list = status === 200 ? canceled : sent
    list.push(`${created.body.id} ${id}`)
  }
  await Promise.all(Array.from({ length: SCHEDULED }, (_, n) => race(n)))
  await untilSettled(rig)
  expect([...(await takenOf(rig))].sort()).toEqual(sent.map((name) => [name, 1] as const).sort())
  for (const { messageId, subscriptionId, state } of await rig.deliveries())
    expect(state).toBe(canceled.includes(`${messageId} ${subscriptionId}`) ? 'canceled' : 'sent')
  await expectCounted(rig)
  console.log(`cancels: ${canceled.length} canceled, ${sent.length} sent`)
})

test('a broadcast that is canceled while it is sent stops after what is under way', async () => {
  const dice = throwDice('cancels of broadcasts')
  const rig = await openRig({ recipients: AUDIENCE })
  const counts: string[] = []
  for (let n = 0; n < BROADCASTS; n++) {
    await rig.setRate(150)
    const created = await rig.create(dice.pick(rig.urls), {
      included_segments: ['Subscribed Users'],
      contents: { en: 'Hello' },
    })
    expect(created.status).toBe(200)
    const { id } = created.body
    await pause(dice.between(50, 1_500))
    const { status } = await rig.cancel(dice.pick(rig.urls), id)
    const own = async () => (await rig.taken()).filter(({ message_id }) => message_id === id).length
    const before = await own()
    expect([200, 400]).toContain(status)
    await untilSettled(rig)
    await rig.setRate(0)
    const after = await own()
    const states = await rig.database.db.query<{ state: string; count: number }>(sql`
      select state, count(*)::integer as count from deliveries
      where app_id = ${rig.keys.appId} and message_id = ${id} group by state`)
    const inState = (wanted: string) => states.find(({ state }) => state === wanted)?.count ?? 0
    counts.push(`${status}: ${before}+${after - before}`)
    // Canceled before there was anything to write down, it has no deliveries at all.
    expect([0, AUDIENCE]).toContain(inState('sent') + inState('canceled'))
    expect(inState('sent')).toBe(after)
    if (status === 400) expect(after).toBe(AUDIENCE)
    else {
      expect(after).toBeLessThan(AUDIENCE)
      expect(after - before).toBeLessThanOrEqual(IN_FLIGHT * PROVIDERS * rig.nodes.length)
    }
  }
  const taken = await takenOf(rig)
  expect([...taken.values()].every((count) => count === 1)).toBe(true)
  await expectCounted(rig)
  console.log(`cancels of broadcasts: ${counts.join(', ')}`)
})
