import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { sql } from '../../src/storage/sql.ts'
import { until } from '../process/launch.ts'
import { isFull } from './ledger.ts'
import { expectMetrics, subscribeMailboxes } from './mailers.ts'
import { openRig, type Rig, throwDice, untilDone, untilSettled } from './rig.ts'
import { expectDelivered } from './senders.ts'

const MAILS = isFull ? 100_000 : 10_000
/** In each of them every server is killed once. */
const ROUNDS = isFull ? 10 : 1
const KILLS = 2 * ROUNDS
/** What the box takes in a second: so little that it lasts longer than the kills. */
const PER_SECOND = isFull ? 1_000 : 500
/** More than elsewhere: each slice is a mail to so many. */
const IN_FLIGHT = 80
/** Leases run for 30 s, and what a dead server held is taken up after that. Tests share their machine. */
const SETTLED_MS = 900_000
const DOMAIN = 'news.example'

test('servers that are killed while they send a mail to many lose nobody, write to nobody twice, and leave little unknown', async () => {
  const dice = throwDice('mail kills')
  const rig = await openRig({ recipients: 0, env: { MAX_IN_FLIGHT: String(IN_FLIGHT) } })
  rig.recipients = await subscribeMailboxes(rig, MAILS)
  await rig.setRate(PER_SECOND)
  const began = performance.now()
  const { status, body } = await rig.create(dice.pick(rig.urls), {
    target_channel: 'email',
    included_segments: ['Subscribed Users'],
    email_from_address: `bells@${DOMAIN}`,
    email_subject: 'They ring',
    email_body: '<p>For all: <a href="https://bell.example/sunday">on Sunday</a>.</p>',
  })
  expect(status).toBe(200)
  for (let rounds = 0, before = 0; rounds < ROUNDS; rounds++) {
    // What the last round stopped goes on when its leases have run out; a kill before that would only put it off.
    await until(async () => (await countSent(rig)) > before, SETTLED_MS)
    for (const node of rig.nodes.toSorted(() => dice.next() - 0.5)) {
      await pause(dice.between(0, 1_000))
      await until(() => isSending(rig), SETTLED_MS)
      await node.server.kill()
    }
    before = await countSent(rig)
    for (const node of rig.nodes) await node.start()
  }
  await rig.setRate(0)
  await untilSettled(rig, SETTLED_MS)
  const seconds = ((performance.now() - began) / 1_000).toFixed(1)
  if (isFull) await untilDone(rig)
  const acknowledged = new Map([[body.id as string, rig.recipients.map(({ id }) => id)]])
  const unknown = (await expectDelivered(rig, acknowledged)).get('email') ?? 0
  console.log(`mail kills: ${MAILS} mails, ${KILLS} kills, settled after ${seconds} s, ${unknown} unknown`)
  expect(unknown).toBeLessThanOrEqual(KILLS * IN_FLIGHT)
  await expectMetrics(rig, DOMAIN)
}, 1_200_000)

async function countSent({ database: { db }, keys }: Rig): Promise<number> {
  const [found] = await db.query<{ count: number }>(sql`
    select coalesce(sum(c.count), 0) as count from message_counts c where c.app_id = ${keys.appId} and c.state = 'sent'`)
  return found?.count ?? 0
}

const isSending = async ({ database: { db }, keys }: Rig) =>
  (await db.query(sql`select 1 from slices where app_id = ${keys.appId} limit 1`)).length > 0
