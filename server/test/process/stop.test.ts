import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { halfSent } from './half-sent.ts'
import { launch, postgresOf, printedKeys, type Server, until, viewUser } from './launch.ts'

/** Signal it while a request is under way: that one is answered and kept, and then nothing is left. */
async function expectCleanStop(server: Server, signal: () => void) {
  const url = await server.ready()
  const keys = printedKeys(server.out())
  const request = await halfSent(url, keys, 'under-way')
  signal()
  await until(() => server.out().includes('Stopping'))
  expect(await request.finish()).toMatch(/^HTTP\/1\.1 201 [\s\S]+"external_id":"under-way"/)
  expect(await server.ended).toMatchObject({ code: 0, signal: null })
  expect(await postgresOf(server.dataDir)).toEqual([])
  expect(await readdir(join(server.dataDir, 'postgres'))).not.toContain('postmaster.pid')

  const next = await launch({ dataDir: server.dataDir })
  expect((await viewUser(await next.ready(), keys, 'under-way')).status).toBe(200)
  await next.stop()
}

describe('a clean stop', () => {
  test('by SIGTERM', async () => {
    const server = await launch()
    await expectCleanStop(server, () => server.child.kill('SIGTERM'))
  })

  test('by two signals at once, as the terminal and npm send them', async () => {
    const server = await launch()
    await expectCleanStop(server, () => {
      // Two of the same kind could arrive as one.
      server.child.kill('SIGINT')
      server.child.kill('SIGTERM')
    })
  })

  test('by SIGTERM to npm', async () => {
    const server = await launch({ command: ['npm', 'start'] })
    await expectCleanStop(server, () => server.child.kill('SIGTERM'))
  })

  test('by Ctrl-C, which the terminal sends to npm, the server and whoever else is in the group', async () => {
    const server = await launch({ command: ['npm', 'start'], options: { detached: true } })
    await expectCleanStop(server, () => process.kill(-server.pid, 'SIGINT'))
  })

  test('in the middle of the first start, which the next one then does', async () => {
    const server = await launch()
    await until(async () => (await readdir(server.dataDir).catch(() => [])).some((name) => name.startsWith('postgres')))
    server.child.kill('SIGINT')
    expect(await server.ended).toMatchObject({ code: 0, signal: null, err: '' })
    expect(await postgresOf(server.dataDir)).toEqual([])
    const next = await launch({ dataDir: server.dataDir })
    await next.ready()
    expect(printedKeys(next.out()).appKey).not.toBe('')
    await next.stop()
  })
})

test('a second signal of somebody who will not wait ends it at once, and PostgreSQL with it', async () => {
  const server = await launch()
  const url = await server.ready()
  await halfSent(url, printedKeys(server.out()), 'never-sent')
  server.child.kill('SIGTERM')
  await until(() => server.out().includes('Stopping'))
  // Two that come at once are one: only the later one counts.
  await until(() => !server.child.kill('SIGTERM') || server.child.exitCode !== null)
  expect(await server.ended).toMatchObject({ code: 1 })
  await until(async () => (await postgresOf(server.dataDir)).length === 0)
})

test('after kill -9 the next start just works, with everything', async () => {
  const first = await launch()
  const url = await first.ready()
  const keys = printedKeys(first.out())
  expect(await (await halfSent(url, keys, 'before')).finish()).toMatch(/^HTTP\/1\.1 201/)
  await first.kill()
  const second = await launch({ dataDir: first.dataDir })
  expect((await viewUser(await second.ready(), keys, 'before')).status).toBe(200)
  await second.stop()
})
