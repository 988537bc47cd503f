import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { expectTold, listenToEvents } from './events.ts'
import { isFull } from './ledger.ts'
import { IN_FLIGHT, openRig, throwDice } from './rig.ts'
import { expectDelivered, PER_SECOND, settle, startSenders } from './senders.ts'

const KILLS = isFull ? 100 : 20
const STOPS = isFull ? 10 : 3

test('servers that are killed or stopped while they send lose nothing, send nothing twice, leave little unknown, and tell of all they sent', async () => {
  const dice = throwDice('kills')
  const rig = await openRig({ numbers: 20 })
  await listenToEvents(rig)
  await rig.setRate(PER_SECOND)
  const senders = startSenders(rig, dice)
  const signals = [...Array(KILLS).fill('SIGKILL'), ...Array(STOPS).fill('SIGTERM')]
    .map((signal) => ({ signal, at: dice.next() }))
    .sort((a, b) => a.at - b.at)
  for (const { signal } of signals) {
    await pause(dice.between(200, 2_000))
    const node = dice.pick(rig.nodes)
    if (signal === 'SIGKILL') await node.server.kill()
    else await node.server.stop()
    await node.start()
  }
  const seconds = await settle(rig, senders)
  const unknown = await expectDelivered(rig, senders.acknowledged)
  const told = await expectTold(rig)
  console.log(
    `kills: ${senders.acknowledged.size} messages, settled after ${seconds} s, unknown: ${[...unknown].join(' ')}; ${told}`,
  )
  for (const [provider, count] of unknown) expect(count, provider).toBeLessThanOrEqual(KILLS * IN_FLIGHT)
  expect([...senders.statuses].filter((status) => ![0, 200, 503].includes(status))).toEqual([])
}, 3_600_000)

test('a server that is asked to stop while it sends leaves nothing unknown', async () => {
  const dice = throwDice('stops')
  const rig = await openRig({ numbers: 20 })
  await rig.setRate(PER_SECOND)
  const senders = startSenders(rig, dice)
  for (let stops = 0; stops < STOPS; stops++) {
    await pause(dice.between(500, 2_000))
    const node = dice.pick(rig.nodes)
    await node.server.stop()
    await node.start()
  }
  const seconds = await settle(rig, senders)
  const unknown = await expectDelivered(rig, senders.acknowledged)
  console.log(`stops: ${senders.acknowledged.size} messages, settled after ${seconds} s`)
  expect([...unknown.values()].every((count) => count === 0)).toBe(true)
}, 1_200_000)
