// Servers in processes of their own, started, watched and ended as an operator does it. What a test leaves behind,
// processes and folders, is taken away after it.

import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, vi } from 'vitest'
import { findServerProcesses } from '../../src/storage/embedded/leftovers.ts'

export const PROJECT = fileURLToPath(new URL('../../../', import.meta.url))
export const NOBODY = { uid: 65_534, gid: 65_534 }
export const isRoot = process.getuid?.() === 0

/** After this long, what a test waits for will never happen. It is no promise of speed: tests share their machine. */
export const HANG_MS = 240_000

export type Launch = {
  /** Where its data is; `data` in a fresh folder unless told. */
  dataDir?: string
  env?: Record<string, string>
  /** Node and the launcher unless told. */
  command?: string[]
  options?: SpawnOptions
}

export type Ended = { code: number | null; signal: NodeJS.Signals | null; out: string; err: string }

export type Server = {
  child: ChildProcess
  pid: number
  dataDir: string
  out(): string
  err(): string
  /** Resolves with its address as soon as /ready says so. */
  ready(deadlineMs?: number): Promise<string>
  /** Resolves when it has ended and closed its output. */
  ended: Promise<Ended>
  /** SIGTERM, and the end that must be clean. */
  stop(): Promise<void>
  /** kill -9 */
  kill(): Promise<void>
}

// One test may start several servers and wait for each of them.
vi.setConfig({ testTimeout: 5 * HANG_MS, hookTimeout: HANG_MS })

const launched: Server[] = []
const folders: string[] = []

afterEach(async () => {
  for (const server of launched.splice(0)) {
    server.child.kill('SIGKILL')
    for (const pid of await postgresOf(server.dataDir)) killIfThere(pid)
    await server.ended
    await until(async () => (await postgresOf(server.dataDir)).length === 0)
  }
  for (const folder of folders.splice(0).reverse()) {
    spawnSync('umount', ['--recursive', folder], { stdio: 'ignore' })
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
})

/** It may end by itself in the meantime. */
function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** A folder that others may pass through, as /srv would be. */
export async function freshFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'carillon-process-'))
  await chmod(folder, 0o755)
  folders.push(folder)
  return folder
}

/** A file system of its own, for what cannot be done to the machine's; undefined where mounting is forbidden. */
export async function mountAt(folder: string, ...args: string[]): Promise<boolean> {
  await mkdir(folder, { recursive: true })
  folders.push(folder)
  return spawnSync('mount', [...args, folder], { stdio: 'ignore' }).status === 0
}

export async function launch({ dataDir, env = {}, command, options }: Launch = {}): Promise<Server> {
  const data = dataDir ?? join(await freshFolder(), 'data')
  const [program = '', ...args] = command ?? [process.execPath, join(PROJECT, 'server/run.mjs'), 'main']
  const child = spawn(program, args, {
    cwd: PROJECT,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...options,
    // Nothing of the test's own environment is a setting of the process.
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      PORT: '0',
      HOST: '127.0.0.1',
      LOG_LEVEL: 'error',
      DRAIN_SECONDS: '0',
      DATA_DIR: data,
      ...env,
    },
  })
  let out = ''
  let err = ''
  child.stdout?.setEncoding('utf8').on('data', (text) => (out += text))
  child.stderr?.setEncoding('utf8').on('data', (text) => (err += text))
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, out, err }))
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null

  const server: Server = {
    child,
    pid: child.pid as number,
    dataDir: data,
    out: () => out,
    err: () => err,
    ended,
    async ready(deadlineMs = HANG_MS) {
      let url: string | undefined
      await until(async () => {
        if (hasEnded()) throw new Error(`the server ended: ${err}`)
        url = /listens on (\S+)/.exec(out)?.[1]
        return url !== undefined && (await isReady(url))
      }, deadlineMs)
      return url as string
    },
    async stop() {
      child.kill('SIGTERM')
      expect(await ended).toMatchObject({ code: 0, signal: null })
      expect(await postgresOf(data)).toEqual([])
    },
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
  }
  launched.push(server)
  return server
}

/** A start that must fail, in one line and without a trace: that line. */
export async function refusal(options: Launch): Promise<string> {
  const server = await launch(options)
  const { code, out, err } = await server.ended
  expect({ code, out }).toEqual({ code: 1, out: '' })
  expect(err).toMatch(/^Carillon [^\n]+\n$/)
  expect(await postgresOf(server.dataDir)).toEqual([])
  return err.trim().replace(/^Carillon cannot start: /, '')
}

export type FirstKeys = { organizationId: string; organizationKey: string; appId: string; appKey: string }

export function printedKeys(out: string): FirstKeys {
  const read = (name: string) => new RegExp(`^ +${name} +(\\S+)$`, 'm').exec(out)?.[1] ?? ''
  return {
    organizationId: read('organization id'),
    organizationKey: read('organization key'),
    appId: read('app id'),
    appKey: read('app key'),
  }
}

export const postgresOf = (dataDir: string) => findServerProcesses(join(dataDir, 'postgres'))

export const isReady = (url: string) =>
  fetch(`${url}/ready`, { signal: AbortSignal.timeout(5_000) }).then(
    (answer) => answer.status === 200,
    () => false,
  )

export async function until(isSo: () => boolean | Promise<boolean>, deadlineMs = HANG_MS): Promise<void> {
  const began = performance.now()
  while (!(await isSo())) {
    if (performance.now() - began > deadlineMs) throw new Error(`not so within ${deadlineMs / 1000} s: ${isSo}`)
    await pause(20)
  }
}

const request = (method: string, { appKey }: FirstKeys, body?: unknown): RequestInit => ({
  method,
  headers: { authorization: `Key ${appKey}`, 'content-type': 'application/json' },
  ...(body !== undefined && { body: JSON.stringify(body) }),
})

export const createUser = (url: string, keys: FirstKeys, name: string) =>
  fetch(
    `${url}/apps/${keys.appId}/users`,
    request('POST', keys, {
      identity: { external_id: name },
      subscriptions: [{ type: 'Email', token: `${name}@example.com` }],
    }),
  )

export const viewUser = (url: string, keys: FirstKeys, name: string) =>
  fetch(`${url}/apps/${keys.appId}/users/by/external_id/${name}`, request('GET', keys))
