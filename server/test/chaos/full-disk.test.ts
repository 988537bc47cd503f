import { spawnSync } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  FIRST_START_MS,
  freshFolder,
  isRoot,
  launch,
  mountAt,
  printedKeys,
  SLACK,
  until,
  viewUser,
} from '../process/launch.ts'
import { expectKept, isFull, startWriters, statusesOf } from './ledger.ts'

const REFUSALS = isFull ? 100_000 : 3_000

test('a disk that runs full: writes are refused, reads go on, and with room writes work again without a restart', async ({
  skip,
}) => {
  if (!isRoot || process.platform !== 'linux') skip('needs root on Linux, to mount a small disk')
  const disk = join(await freshFolder(), 'disk')
  if (!(await mountAt(disk, '-t', 'tmpfs', '-o', 'size=400m', 'tmpfs'))) skip('mounting is forbidden here')
  const server = await launch({ dataDir: join(disk, 'data'), env: { LIMITS: 'off', LOG_LEVEL: 'silent' } })
  const url = await server.ready(FIRST_START_MS)
  const keys = printedKeys(server.out())
  const { ledger, stop } = startWriters(url, keys, 16)
  await until(() => ledger.acknowledged.length >= 300, 60_000)

  spawnSync('dd', ['if=/dev/zero', `of=${disk}/fill`, 'bs=64k'], { stdio: 'ignore' })
  const known = ledger.acknowledged[0] as string
  await until(async () => {
    expect((await viewUser(url, keys, known)).status).toBe(200)
    return (ledger.statuses.get(503) ?? 0) >= REFUSALS
  }, 60_000)

  await rm(join(disk, 'fill'))
  const acknowledged = ledger.acknowledged.length
  await until(() => ledger.acknowledged.length >= acknowledged + 100, 10_000 * SLACK)
  await stop()
  expect(statusesOf(ledger)).toEqual([201, 202, 503])
  await expectKept(ledger, keys, server.dataDir)
  await server.stop()
})
