import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { isFull } from './ledger.ts'
import { firstProcess, killOne, servingProcess } from './postgres.ts'
import { IN_FLIGHT, openRig, throwDice } from './rig.ts'
import { expectDelivered, PER_SECOND, settle, startSenders } from './senders.ts'

const KILLS = isFull ? 30 : 6

/** What the provider answered while the database was away is written down when it is back: the server itself is not killed. */
test('a database that is killed while its server sends loses nothing, and nothing is sent twice', async () => {
  const dice = throwDice('database kills')
  const rig = await openRig({ hasOwnDatabase: true })
  await rig.setRate(PER_SECOND)
  const senders = startSenders(rig, dice)
  const [node] = rig.nodes
  const { dataDir } = node?.server ?? expect.fail('there is a server')
  for (let kills = 0; kills < KILLS; kills++) {
    await pause(dice.between(500, 2_000))
    await killOne(dice.next() < 0.5 ? firstProcess : servingProcess, dataDir)
  }
  const seconds = await settle(rig, senders)
  const unknown = await expectDelivered(rig, senders.acknowledged)
  console.log(
    `database kills: ${senders.acknowledged.size} messages, settled after ${seconds} s, unknown: ${[...unknown].join(' ')}`,
  )
  for (const [provider, count] of unknown) expect(count, provider).toBeLessThanOrEqual(KILLS * IN_FLIGHT)
  expect([...senders.statuses].filter((status) => ![0, 200, 503].includes(status))).toEqual([])
})
