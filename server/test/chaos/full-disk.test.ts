import { spawnSync } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { expect, test } from 'vitest'
import { freshFolder, isRoot, launch, mountAt, printedKeys, until, viewUser } from '../process/launch.ts'
import { expectKept, isFull, startWriters, statusesOf } from './ledger.ts'

const REFUSALS = isFull ? 200_000 : 3_000

test('a disk that runs full: writes are refused, reads go on, and with room writes work again without a restart', async ({
  skip,
}) => {
  if (!isRoot || process.platform !== 'linux') skip('needs root on Linux, to mount a small disk')
  const disk = join(await freshFolder(), 'disk')
  if (!(await mountAt(disk, '-t', 'tmpfs', '-o', 'size=400m', 'tmpfs'))) skip('mounting is forbidden here')
  const server = await launch({ dataDir: join(disk, 'data'), env: { LIMITS: 'off', LOG_LEVEL: 'silent' } })
  const url = await server.ready()
  const keys = printedKeys(server.out())
  const { ledger, stop } = startWriters(url, keys, 16)
  await until(() => ledger.acknowledged.length >= 300)

  spawnSync('dd', ['if=/dev/zero', `of=${disk}/fill`, 'bs=64k'], { stdio: 'ignore' })
  const known = ledger.acknowledged[0] as string
  const read = async () => (await viewUser(url, keys, known)).status
  // In the moments before the server notices, PostgreSQL may fall for want of room, and comes back in its reserve.
  await until(async () => (ledger.statuses.get(503) ?? 0) > 0 && (await read()) === 200)
  const before = await logPosition(server.dataDir)
  await until(async () => {
    expect(await read()).toBe(200)
    return (ledger.statuses.get(503) ?? 0) >= REFUSALS
  })
  // A refused write that reached PostgreSQL would use up the room for its log, and end it before long.
  expect((await logPosition(server.dataDir)) - before).toBeLessThan(512 * 1024)

  await rm(join(disk, 'fill'))
  const acknowledged = ledger.acknowledged.length
  await until(() => ledger.acknowledged.length >= acknowledged + 100)
  await stop()
  expect(statusesOf(ledger)).toEqual([201, 202, 503])
  await expectKept(ledger, keys, server.dataDir)
  await server.stop()
})

async function logPosition(dataDir: string): Promise<number> {
  const client = new pg.Client({ host: join(dataDir, 'socket'), user: 'carillon', database: 'carillon' })
  await client.connect()
  const { rows } = await client.query("select pg_current_wal_insert_lsn() - '0/0' as position")
  await client.end()
  return Number(rows[0].position)
}
