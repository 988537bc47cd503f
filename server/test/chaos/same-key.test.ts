import { expect, test } from 'vitest'
import { newId } from '../../src/lib/ids.ts'
import { sql } from '../../src/storage/sql.ts'
import { isFull } from './ledger.ts'
import { expectCounted, openRig, takenOf, throwDice, untilDone, untilSettled } from './rig.ts'

const KEYS = isFull ? 500 : 50
const TIMES = isFull ? 20 : 10

test('a message that many clients bring with one key, on both servers and half of them hanging up, is one message', async () => {
  const dice = throwDice('same key')
  const rig = await openRig({ recipients: 12 })
  const orders = Array.from({ length: KEYS }, () => ({
    idempotency_key: newId(),
    include_subscription_ids: [dice.pick(rig.recipients).id],
    contents: { en: 'Hello' },
  }))
  /** What each key was answered: ids, and refusals of the other body. */
  const told = new Map<string, string[]>(orders.map(({ idempotency_key }) => [idempotency_key, []]))

  async function bring(order: (typeof orders)[number], nth: number) {
    const body = nth === 0 ? { ...order, contents: { en: 'Something else' } } : order
    const hangsUp = nth % 2 === 1
    const signal = hangsUp ? AbortSignal.timeout(dice.between(1, 40)) : undefined
    const { status, body: answer } = await rig.create(dice.pick(rig.urls), body, signal)
    if (status === 0) return expect(hangsUp).toBe(true)
    expect([200, 400]).toContain(status)
    told
      .get(order.idempotency_key)
      ?.push(status === 200 ? `${answer.id} ${body.contents.en}` : `refused ${body.contents.en}`)
  }
  for (let from = 0; from < KEYS; from += 10) {
    const some = orders.slice(from, from + 10)
    await Promise.all(some.flatMap((order) => Array.from({ length: TIMES }, (_, nth) => bring(order, nth))))
  }
  // The last word: whoever did not hear what became of it asks again.
  for (const [nth, order] of orders.entries()) await bring(order, 2 + 2 * (nth % 2))

  const stored = await rig.database.db.query<{ key: string; id: string; text: string }>(sql`
    select k.key::text as key, m.id, m.content -> 'contents' ->> 'en' as text
    from messages m left join message_keys k on k.app_id = ${rig.keys.appId} and k.message_id = m.id
    where m.app_id = ${rig.keys.appId}`)
  expect(stored.length).toBe(KEYS)
  expect(new Set(stored.map(({ key }) => key))).toEqual(new Set(told.keys()))
  for (const { key, id, text } of stored) {
    const wrong = text === 'Hello' ? 'Something else' : 'Hello'
    // One id, told only to those whose message it is; the others were refused.
    for (const answer of told.get(key) ?? []) expect([`${id} ${text}`, `refused ${wrong}`]).toContain(answer)
  }
  await untilSettled(rig)
  const taken = await takenOf(rig)
  expect([...taken.values()].every((count) => count === 1)).toBe(true)
  expect(taken.size).toBe(KEYS)
  await untilDone(rig)
  await expectCounted(rig)
})
