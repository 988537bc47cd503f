import { expect, test } from 'vitest'
import { launch, printedKeys, until } from '../process/launch.ts'
import { expectKept, isFull, startWriters, statusesOf } from './ledger.ts'

const KILLS = isFull ? 20 : 3
const WRITES_BETWEEN = isFull ? 5_000 : 300

test('kill -9 of the server under load loses nothing that was acknowledged and tears nothing', async () => {
  let server = await launch({ env: { LIMITS: 'off' } })
  const url = await server.ready()
  const keys = printedKeys(server.out())
  const { ledger, stop } = startWriters(url, keys, 16)
  for (let kill = 0; kill < KILLS; kill++) {
    const before = ledger.acknowledged.length
    await until(() => ledger.acknowledged.length >= before + WRITES_BETWEEN)
    await server.kill()
    server = await launch({ dataDir: server.dataDir, env: { LIMITS: 'off' } })
    ledger.url = await server.ready()
  }
  await stop()
  expect(statusesOf(ledger)).toEqual([0, 201, 202])
  await expectKept(ledger, keys, server.dataDir)
  await server.stop()
})
