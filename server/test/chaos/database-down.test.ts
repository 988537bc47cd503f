import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { isReady, launch, postgresOf, printedKeys, until } from '../process/launch.ts'
import { expectKept, isFull, startWriters, statusesOf } from './ledger.ts'

const OUTAGE_MS = isFull ? 60_000 : 10_000
const PROMISE_MS = 5_000
const MOST_GROWTH_BYTES = 200 * 1024 * 1024

test('a database that does not answer: 503 in time, alive but not ready, in bounded memory, and back by itself', async () => {
  const server = await launch({ env: { LIMITS: 'off', LOG_LEVEL: 'silent' } })
  const url = await server.ready()
  const keys = printedKeys(server.out())
  const { ledger, stop } = startWriters(url, keys, 64)
  await until(() => ledger.acknowledged.length >= 500)
  const before = await memoryOf(server.pid)

  await signalAll(server.dataDir, 'SIGSTOP')
  const began = performance.now()
  let peak = before
  await until(async () => {
    const [health, readiness] = await Promise.all([fetch(`${url}/health`), fetch(`${url}/ready`)])
    expect([health.status, readiness.status]).toEqual([200, 503])
    peak = Math.max(peak, await memoryOf(server.pid))
    return performance.now() - began > OUTAGE_MS
  })
  const duringOutage = ledger.statuses.get(503) ?? 0
  await signalAll(server.dataDir, 'SIGCONT')

  const acknowledged = ledger.acknowledged.length
  await until(() => ledger.acknowledged.length >= acknowledged + 100)
  expect(await isReady(url)).toBe(true)
  await stop()
  expect(statusesOf(ledger)).toEqual([201, 202, 503])
  expect(duringOutage).toBeGreaterThanOrEqual(64)
  expect([...ledger.refusals]).toEqual(['{"errors":["Service temporarily unavailable"]}'])
  expect(ledger.slowestRefusalMs).toBeLessThan(PROMISE_MS * 2)
  expect(peak - before).toBeLessThan(MOST_GROWTH_BYTES)
  await expectKept(ledger, keys, server.dataDir)
  await server.stop()
})

async function signalAll(dataDir: string, signal: NodeJS.Signals) {
  for (const pid of await postgresOf(dataDir)) process.kill(pid, signal)
}

async function memoryOf(pid: number): Promise<number> {
  const kilobytes = /VmRSS:\s+(\d+) kB/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Number(kilobytes) * 1024
}
