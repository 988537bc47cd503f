import { expect, test } from 'vitest'
import { launch, printedKeys, until } from '../process/launch.ts'
import { expectKept, isFull, startWriters, statusesOf } from './ledger.ts'

const ROUNDS = isFull ? 10 : 2

test('SIGTERM under load: every request that was taken on is answered to the end, and none that was not had an effect', async () => {
  let server = await launch({ env: { LIMITS: 'off' } })
  let url = await server.ready()
  const keys = printedKeys(server.out())
  for (let round = 0; round < ROUNDS; round++) {
    const { ledger, stop } = startWriters(url, keys, 32, `round-${round}-`)
    await until(() => ledger.acknowledged.length >= 300)
    await server.stop()
    await stop()
    expect(ledger.incomplete).toBe(0)
    // 0: the connection was closed between two requests, or refused.
    expect(statusesOf(ledger)).toEqual([0, 201, 202])

    server = await launch({ dataDir: server.dataDir, env: { LIMITS: 'off' } })
    url = await server.ready()
    ledger.url = url
    expect(await expectKept(ledger, keys, server.dataDir)).toEqual({ appeared: [] })
  }
  await server.stop()
})
