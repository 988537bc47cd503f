// What a server takes that has nothing to do: everybody waits, and nobody is due.

import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { cpuSeconds, postgresCpuSeconds } from '../kit/cpu.ts'
import type { Carillon } from '../kit/processes.ts'
import { type Row, round } from '../kit/report.ts'
import { settle } from '../kit/seed.ts'

const GOAL = 0.02
/** What was measured before has its last writes done. */
const REST_MS = 3_000

export async function measureIdle(
  { pid, dataDir }: Carillon,
  connection: pg.ClientConfig,
  { runs, seconds }: { runs: number; seconds: number },
): Promise<Row> {
  await settle(connection)
  await sleep(REST_MS)
  const look = () => ({ server: cpuSeconds(pid), postgres: postgresCpuSeconds(dataDir), atMs: performance.now() })
  const before = look()
  await sleep(seconds * 1_000)
  const after = look()
  const shareOf = (used: number) => used / ((after.atMs - before.atMs) / 1_000)
  const server = shareOf(after.server - before.server)
  const postgres = shareOf(after.postgres - before.postgres)
  return {
    name: `${runs} runs wait: ${GOAL * 100} % of a core against what is taken`,
    ratio: round(GOAL / (server + postgres)),
    goal: 1,
    serverPercent: round(server * 100),
    postgresPercent: round(postgres * 100),
  }
}
