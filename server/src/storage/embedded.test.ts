import { type ChildProcess, execFileSync, type SpawnOptions, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { createLog } from '../lib/log.ts'
import { findServerProcesses } from './embedded/leftovers.ts'
import { EmbeddedError, type EmbeddedPostgres, startEmbedded } from './embedded.ts'

const PROGRAM = fileURLToPath(new URL('../../test/embedded-process.ts', import.meta.url))
const NOBODY = { uid: 65_534, gid: 65_534 }
const isRoot = process.getuid?.() === 0
const log = createLog('silent')

let home: string
const servers: EmbeddedPostgres[] = []
const children: ChildProcess[] = []

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'carillon-embedded-'))
})
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.stop()))
  await Promise.all(children.splice(0).map(end))
})
afterAll(() => rm(home, { recursive: true, force: true }))

const freshFolder = async () => join(await mkdtemp(join(home, 'f-')), 'data')

async function start(dataDir: string, settings: Record<string, string> = { fsync: 'off' }): Promise<EmbeddedPostgres> {
  const server = await startEmbedded({ dataDir, log, settings })
  servers.push(server)
  return server
}

async function refusal(dataDir: string): Promise<string> {
  const error = await start(dataDir).then(
    () => new Error('it started'),
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(EmbeddedError)
  expect((error as Error).message).not.toContain('\n')
  return (error as Error).message
}

/** The same in a process of its own: as somebody else, with other programs in the path, or to be killed. */
function startElsewhere(dataDir: string, options: SpawnOptions = {}): ChildProcess {
  const child = spawn(process.execPath, [PROGRAM, dataDir], { stdio: ['ignore', 'pipe', 'inherit'], ...options })
  children.push(child)
  return child
}

async function answerOf(child: ChildProcess): Promise<{ pid?: number; refused?: string }> {
  if (!child.stdout) throw new Error('no output')
  const [line] = await once(createInterface(child.stdout), 'line')
  return JSON.parse(line as string)
}

/** Not killed: where PostgreSQL does not die with its server, it would stay. */
async function end(child: ChildProcess) {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}

async function kill(child: ChildProcess) {
  child.kill('SIGKILL')
  await once(child, 'exit')
}

async function query(server: EmbeddedPostgres, text: string): Promise<unknown[][]> {
  const client = new pg.Client({ ...server.connection, connectionTimeoutMillis: 2_000 })
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query({ text, rowMode: 'array' })).rows
  } finally {
    await client.end()
  }
}

const processesOf = (dataDir: string) => findServerProcesses(join(dataDir, 'postgres'))
const modeOf = async (path: string) => (await stat(path)).mode & 0o777

/** Programs put before the system's own, as on a machine that lacks or forbids them. */
async function pathWithout(...programs: string[]): Promise<NodeJS.ProcessEnv> {
  const folder = await mkdtemp(join(home, 'bin-'))
  await chmod(folder, 0o755)
  for (const program of programs)
    await writeFile(join(folder, program), '#!/bin/sh\necho "Operation not permitted" >&2; exit 1\n', { mode: 0o755 })
  return { ...process.env, PATH: `${folder}:${process.env.PATH}` }
}

describe('a start', () => {
  test('makes a database that is durable, checked, and closed to everyone else', async () => {
    const dataDir = await freshFolder()
    const server = await start(dataDir, {})
    const [settings] = await query(
      server,
      `select current_database(), current_setting('fsync'), current_setting('full_page_writes'),
        current_setting('synchronous_commit'), current_setting('data_checksums'), current_setting('listen_addresses'),
        current_setting('server_encoding'), current_setting('timezone'), lower('Ä')`,
    )
    expect(settings).toEqual(['carillon', 'on', 'on', 'on', 'on', '', 'UTF8', 'UTC', 'ä'])
    expect(await modeOf(dataDir)).toBe(0o700)
    expect(await modeOf(server.connection.host as string)).toBe(0o700)
    expect(await modeOf(join(dataDir, 'postgres'))).toBe(0o700)
    expect(await readFile(join(dataDir, 'postgres.log'), 'utf8')).toContain('ready to accept connections')
  })

  test('after a stop finds the data again, and the stop leaves no process', async () => {
    const dataDir = await freshFolder()
    const first = await start(dataDir)
    await query(first, 'create table kept as select 42 as n')
    await first.stop()
    expect(first.pid()).toBeUndefined()
    expect(await processesOf(dataDir)).toEqual([])
    const second = await start(dataDir)
    expect(await query(second, 'select n from kept')).toEqual([[42]])
  })

  test('in a folder whose path is too long for a socket puts the socket elsewhere, closed as well', async () => {
    const dataDir = join(await freshFolder(), 'long'.repeat(30))
    const server = await start(dataDir)
    expect(await query(server, 'select 1')).toEqual([[1]])
    expect(server.connection.host).not.toContain(dataDir)
    expect(await modeOf(server.connection.host as string)).toBe(0o700)
    await server.stop()
    await rm(server.connection.host as string, { recursive: true })
  })

  test('after an interrupted first start begins anew', async () => {
    const dataDir = await freshFolder()
    const child = startElsewhere(dataDir)
    await vi.waitFor(
      async () => {
        const [unfinished = ''] = (await readdir(dataDir)).filter((name) => name.startsWith('postgres.new-'))
        expect(await readdir(join(dataDir, unfinished, 'base'))).not.toEqual([])
      },
      { timeout: 10_000, interval: 5 },
    )
    await kill(child)
    expect(await readdir(dataDir)).not.toContain('postgres')
    const server = await start(dataDir)
    expect(await query(server, 'select 1')).toEqual([[1]])
    expect((await readdir(dataDir)).filter((name) => name.includes('.new-'))).toEqual([])
  })
})

describe('after kill -9 of the server', () => {
  test('PostgreSQL ends with it, and the next start just works', async ({ skip }) => {
    if (spawnSync('setpriv', ['--pdeathsig', 'INT', 'true']).status !== 0) skip('no setpriv on this machine')
    const dataDir = await freshFolder()
    const child = startElsewhere(dataDir)
    const { pid } = await answerOf(child)
    expect(await processesOf(dataDir)).toContain(pid)
    await kill(child)
    await vi.waitFor(async () => expect(await processesOf(dataDir)).toEqual([]), { timeout: 10_000 })
    expect(await query(await start(dataDir), 'select 1')).toEqual([[1]])
  })

  test('an orphan that stayed is ended and replaced', async () => {
    const dataDir = await freshFolder()
    const child = startElsewhere(dataDir, { env: await pathWithout('setpriv') })
    const { pid } = await answerOf(child)
    await kill(child)
    expect(await processesOf(dataDir)).toContain(pid)
    const server = await start(dataDir)
    expect(await processesOf(dataDir)).not.toContain(pid)
    expect(await processesOf(dataDir)).toContain(server.pid())
    expect(await query(server, 'select 1')).toEqual([[1]])
    await server.stop()
    expect(await processesOf(dataDir)).toEqual([])
  })

  test('a stranger who got the old process number is left alone, be it a PostgreSQL of another folder', async () => {
    const dataDir = await freshFolder()
    const first = await start(dataDir)
    const pidFile = join(dataDir, 'postgres', 'postmaster.pid')
    const text = await readFile(pidFile, 'utf8')
    await first.stop()
    const plain = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' })
    children.push(plain)
    const neighbour = await start(await freshFolder())
    for (const stranger of [plain.pid, neighbour.pid()]) {
      await writeFile(pidFile, text.replace(/^\d+/, String(stranger)))
      await writeFile(join(dataDir, 'server.pid'), `${stranger}\n`)
      const server = await start(dataDir)
      expect(await query(server, 'select 1')).toEqual([[1]])
      await server.stop()
      expect([plain.exitCode, plain.signalCode]).toEqual([null, null])
      expect(neighbour.pid()).toBeDefined()
    }
  })
})

describe('while it runs', () => {
  test('PostgreSQL is restarted after kill -9 of its first process, with what was committed', async () => {
    const server = await start(await freshFolder())
    await query(server, 'create table kept as select 42 as n')
    for (let round = 0; round < 2; round++) {
      const pid = server.pid() as number
      process.kill(pid, 'SIGKILL')
      await vi.waitFor(async () => expect(await query(server, 'select n from kept')).toEqual([[42]]), {
        timeout: 15_000,
      })
      expect(server.pid()).not.toBe(pid)
    }
  })

  test('PostgreSQL comes back after kill -9 of a backend', async () => {
    const server = await start(await freshFolder())
    const [[backend]] = (await query(
      server,
      "select pid from pg_stat_activity where backend_type = 'checkpointer'",
    )) as [[number]]
    process.kill(backend, 'SIGKILL')
    await vi.waitFor(
      async () => {
        const [[now]] = (await query(
          server,
          "select pid from pg_stat_activity where backend_type = 'checkpointer'",
        )) as [[number]]
        expect(now).not.toBe(backend)
      },
      { timeout: 15_000 },
    )
  })

  test('a stop in the middle of a restart leaves nothing behind', async () => {
    const dataDir = await freshFolder()
    for (const pauseMs of [0, 120, 180]) {
      const server = await start(dataDir)
      const began = performance.now()
      process.kill(server.pid() as number, 'SIGKILL')
      await vi.waitFor(() => expect(performance.now() - began).toBeGreaterThanOrEqual(pauseMs), { interval: 5 })
      await server.stop()
      expect(server.pid()).toBeUndefined()
      await expect.poll(() => processesOf(dataDir)).toEqual([])
    }
  })

  test('a second server on the same folder is refused with the pid of the first', async () => {
    const dataDir = await freshFolder()
    const server = await start(dataDir)
    expect(await refusal(dataDir)).toBe(`another Carillon (pid ${process.pid}) is using ${dataDir}`)
    expect(await answerOf(startElsewhere(dataDir))).toEqual({
      refused: `another Carillon (pid ${process.pid}) is using ${dataDir}`,
    })
    expect(await query(server, 'select 1')).toEqual([[1]])
  })

  test('of several that start at once exactly one gets the folder', async () => {
    const dataDir = await freshFolder()
    // What a killed server leaves must not help two of them in.
    await mkdir(dataDir, { mode: 0o700 })
    await writeFile(join(dataDir, 'lock'), '')
    await writeFile(join(dataDir, 'server.pid'), `${process.pid}\n`)
    const answers = await Promise.all([1, 2, 3, 4].map(() => answerOf(startElsewhere(dataDir))))
    expect(answers.filter((answer) => answer.pid !== undefined)).toHaveLength(1)
    expect(answers.filter((answer) => answer.refused?.includes('another Carillon'))).toHaveLength(3)
  })
})

describe('a folder that cannot be used is refused in one line:', () => {
  test('a file in its place', async () => {
    const path = await freshFolder()
    await writeFile(path, '')
    expect(await refusal(path)).toBe(`cannot use the data folder ${path}: a file is in the way`)
    expect(await refusal(join(path, 'data'))).toContain('a part of the path is a file, not a folder')
  })

  test('a database of another version', async () => {
    const dataDir = await freshFolder()
    await mkdir(join(dataDir, 'postgres'), { recursive: true, mode: 0o700 })
    await writeFile(join(dataDir, 'postgres', 'PG_VERSION'), '16\n')
    expect(await refusal(dataDir)).toMatch(/was made by PostgreSQL 16, and this is PostgreSQL 18/)
  })

  test('something else in the place of the database', async () => {
    const dataDir = await freshFolder()
    await mkdir(join(dataDir, 'postgres'), { recursive: true, mode: 0o700 })
    await writeFile(join(dataDir, 'postgres', 'holiday.jpg'), '')
    expect(await refusal(dataDir)).toMatch(/^cannot create the database in /)
    expect(await readdir(dataDir)).toContain('postgres')
  })

  test('one that an ordinary user may not read or write', async ({ skip }) => {
    if (!isRoot) skip('needs root, to become somebody else')
    if (spawnSync(process.execPath, ['--check', PROGRAM], NOBODY).status !== 0)
      skip('the project is in a folder that other users cannot read')
    await chmod(home, 0o755)
    const closed = await freshFolder()
    await chmod(join(closed, '..'), 0o755)
    await mkdir(closed, { mode: 0o700 })
    expect((await answerOf(startElsewhere(closed, NOBODY))).refused).toBe(
      `cannot use the data folder ${closed}: permission denied`,
    )
    await chmod(closed, 0o555)
    expect((await answerOf(startElsewhere(closed, NOBODY))).refused).toContain('permission denied')
    await chown(closed, NOBODY.uid, NOBODY.gid)
    await chmod(closed, 0o700)
    const child = startElsewhere(closed, NOBODY)
    expect((await answerOf(child)).pid).toBeGreaterThan(0)
    await end(child)
  })

  test('one on a disk that is full, at the first start and at a later one', async ({ skip }) => {
    if (!isRoot || process.platform !== 'linux') skip('needs root on Linux, to mount a small disk')
    const disk = await mkdtemp(join(home, 'disk-'))
    const mounted = (size: string) =>
      spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', disk]).status === 0
    if (!mounted('20m')) skip('mounting is forbidden here')
    try {
      expect(await refusal(join(disk, 'data'))).toBe(
        `cannot create the database in ${disk}/data: no space left on the disk`,
      )
      expect((await readdir(join(disk, 'data'))).filter((name) => name.startsWith('postgres.new'))).toEqual([])
      execFileSync('mount', ['-o', 'remount,size=80m', disk])
      await (await start(join(disk, 'data'))).stop()
      spawnSync('dd', ['if=/dev/zero', `of=${disk}/fill`, 'bs=4k'], { stdio: 'ignore' })
      expect(await refusal(join(disk, 'data'))).toContain('no space left on the disk')
      await rm(join(disk, 'fill'))
      expect(await query(await start(join(disk, 'data')), 'select 1')).toEqual([[1]])
      await servers.pop()?.stop()
    } finally {
      execFileSync('umount', [disk])
    }
  })
})

describe('as root where user namespaces are forbidden', () => {
  test('PostgreSQL runs as nobody, and the folder changes hands when they are allowed again', async ({ skip }) => {
    if (!isRoot || process.platform !== 'linux') skip('needs root on Linux')
    const env = await pathWithout('unshare')
    await chmod(home, 0o755)
    const dataDir = await freshFolder()
    await chmod(join(dataDir, '..'), 0o755)
    const child = startElsewhere(dataDir, { env })
    const { pid } = await answerOf(child)
    expect((await stat(`/proc/${pid}`)).uid).toBe(NOBODY.uid)
    expect((await modeOf(dataDir)) & 0o027).toBe(0)
    await end(child)
    expect(await query(await start(dataDir), 'select 1')).toEqual([[1]])
  })

  test('a data folder that nobody can reach is one clear line', async ({ skip }) => {
    if (!isRoot || process.platform !== 'linux') skip('needs root on Linux')
    const dataDir = await freshFolder()
    const { refused } = await answerOf(startElsewhere(dataDir, { env: await pathWithout('unshare') }))
    expect(refused).toMatch(/^PostgreSQL cannot run as root, and without root's rights it cannot reach /)
  })
})
