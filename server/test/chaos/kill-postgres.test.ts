import { expect, test } from 'vitest'
import { isReady, launch, printedKeys, until } from '../process/launch.ts'
import { expectKept, isFull, startWriters, statusesOf } from './ledger.ts'
import { firstProcess, servingProcess } from './postgres.ts'

const ROUNDS = isFull ? 10 : 2
const WRITES_BETWEEN = isFull ? 5_000 : 300

test('kill -9 of PostgreSQL, its first process or one that serves, is recovered from without a restart', async () => {
  const server = await launch({ env: { LIMITS: 'off', LOG_LEVEL: 'silent' } })
  const url = await server.ready()
  const keys = printedKeys(server.out())
  const { ledger, stop } = startWriters(url, keys, 16)
  const more = async () => {
    const before = ledger.acknowledged.length
    await until(() => ledger.acknowledged.length >= before + WRITES_BETWEEN)
  }
  await more()
  for (let round = 0; round < ROUNDS; round++) {
    process.kill(await firstProcess(server.dataDir), 'SIGKILL')
    await more()
    process.kill(await servingProcess(server.dataDir), 'SIGKILL')
    await more()
  }
  await stop()
  expect(await isReady(url)).toBe(true)
  // 503 while it is away; 0 would be a server that fell too, 500 one that does not know what happened.
  expect(statusesOf(ledger)).toEqual([201, 202, 503])
  await expectKept(ledger, keys, server.dataDir)
  await server.stop()
})
