import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { carillon, type RunningServer, startServer } from '../../test/command-line.ts'
import { findServerProcesses } from '../storage/embedded/leftovers.ts'

let home: string
let dataDir: string
const servers: RunningServer[] = []

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'carillon-cli-'))
  dataDir = join(home, 'data')
})
afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop()))
  await rm(home, { recursive: true, force: true })
})

const statusOf = async (url: string, appId: string, key: string) =>
  (await fetch(`${url}/apps/${appId}/users/by/external_id/x`, { headers: { authorization: `Key ${key}` } })).status

describe('the command line on a data folder', () => {
  let organizationId: string

  test('without a database says so, and makes none', async () => {
    const ended = await carillon(['app', 'list'], { DATA_DIR: dataDir })
    expect(ended).toMatchObject({ code: 1, out: '' })
    expect(ended.err).toMatch(
      /^carillon: there is no database in .+ yet; start the server, run "carillon org create".+\n$/,
    )
    expect(await readdir(home)).toEqual([])
  })

  test('without a server starts PostgreSQL for the command alone, and makes the tables', async () => {
    const ended = await carillon(['org', 'create', '--name', 'Example', '--json', '--data-dir', dataDir])
    expect(ended).toMatchObject({ code: 0, err: '' })
    const made = JSON.parse(ended.out)
    expect(Object.keys(made)).toEqual(['organization_id', 'key'])
    expect(made.key).toMatch(/^os_v2_org_[a-z2-7]{52}$/)
    organizationId = made.organization_id
    expect(await findServerProcesses(join(dataDir, 'postgres'))).toEqual([])
  })

  test('beside a running server uses its database; its keys work at once, and not after they are revoked', async () => {
    const server = await startServer({ DATA_DIR: dataDir })
    servers.push(server)
    expect((await stat(join(dataDir, 'secret-key'))).mode & 0o777).toBe(0o600)
    const asked = ['app', 'create', '--org', organizationId, '--name', 'Shop', '--json', '--data-dir', dataDir]
    const { app_id: appId, key, ...rest } = JSON.parse((await carillon(asked)).out)
    expect(rest).toEqual({ organization_id: organizationId })
    // No such user, but the key is good.
    expect(await statusOf(server.url, appId, key)).toBe(404)

    const listed = await carillon(['key', 'list', '--app', appId, '--json'], { DATA_DIR: dataDir })
    expect(listed.out).not.toContain(key)
    const [{ key_id: keyId }] = JSON.parse(listed.out)
    const revoked = await carillon(['key', 'revoke', '--app', appId, keyId], { DATA_DIR: dataDir })
    expect(revoked).toEqual({ code: 0, out: `Revoked ${keyId}.\n`, err: '' })
    await expect.poll(() => statusOf(server.url, appId, key), { timeout: 5_000, interval: 100 }).toBe(401)
    expect(await findServerProcesses(join(dataDir, 'postgres'))).not.toEqual([])
  })
})
