import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { carillon } from '../command-line.ts'
import { freshFolder, launch, printedKeys } from './launch.ts'

test('a server on a copy of a data folder holds all sending until the operator says what becomes of it', async () => {
  const first = await launch()
  await first.ready()
  const keys = printedKeys(first.out())
  await first.stop()

  const dataDir = join(await freshFolder(), 'data')
  expect(spawnSync('cp', ['-a', first.dataDir, dataDir]).status).toBe(0)
  const sending = async (url: string) => {
    const headers = { authorization: `Key ${keys.appKey}` }
    return (await fetch(`${url}/apps/${keys.appId}/sending`, { headers })).json()
  }
  const copy = await launch({ dataDir })
  const url = await copy.ready()
  expect(await sending(url)).toMatchObject({ state: 'held', hold: { reason: 'restored' } })
  expect(copy.err()).toContain('this database was restored or copied')
  const doctor = await carillon(['doctor'], { DATA_DIR: dataDir })
  expect(doctor.out).toMatch(/problem +sending +held since .+: the database was restored or copied/)
  expect(await carillon(['resume'], { DATA_DIR: dataDir })).toMatchObject({ code: 1, out: '' })

  // While the server runs: it need not be told.
  expect(await carillon(['resume', '--send'], { DATA_DIR: dataDir })).toMatchObject({ code: 0 })
  expect(await sending(url)).toMatchObject({ state: 'sending' })
  await copy.stop()

  const original = await launch({ dataDir: first.dataDir })
  expect(await sending(await original.ready())).toMatchObject({ state: 'sending' })
  await original.stop()
})
