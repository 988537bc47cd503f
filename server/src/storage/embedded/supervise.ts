import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { open, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../../lib/log.ts'
import type { SpawnCommand } from './account.ts'
import { complaintIn, EmbeddedError, reasonOf } from './error.ts'
import { isDiskFull, SOCKET_NAME } from './folder.ts'
import { endLeftovers } from './leftovers.ts'

export type Supervised = { pid(): number | undefined; stop(): Promise<void> }

export type Server = { command: SpawnCommand; pgData: string; socketDir: string; logPath: string; log: Log }

const POLL_MS = 20
const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 10_000
/** A server that ran this long before it crashed is not in a crash loop. */
const STEADY_MS = 60_000
/** A shutdown begins with a checkpoint, which takes time on a slow disk. */
const FAST_SHUTDOWN_MS = 60_000
const IMMEDIATE_SHUTDOWN_MS = 5_000

/** Starts PostgreSQL, waits until it answers, and restarts it whenever it crashes, until it is stopped. */
export async function supervise(server: Server): Promise<Supervised> {
  const { pgData, log } = server
  const stopping = new AbortController()
  let child: ChildProcess | undefined

  async function launch() {
    await endLeftovers(pgData, log)
    await removeSocket(server.socketDir)
    const mark = await logSize(server.logPath)
    if (stopping.signal.aborted) return
    child = run(server)
    await untilReady(server, child, mark)
  }

  // Each round covers one PostgreSQL process from start to exit.
  async function keepRunning() {
    let pauseMs = FIRST_PAUSE_MS
    while (!stopping.signal.aborted) {
      const began = performance.now()
      await exitOf(child)
      if (stopping.signal.aborted) return
      if (performance.now() - began > STEADY_MS) pauseMs = FIRST_PAUSE_MS
      log.error(
        { pid: child?.pid, code: child?.exitCode, signal: child?.signalCode },
        'PostgreSQL exited unexpectedly; restarting it',
      )
      await sleep(pauseMs, undefined, { signal: stopping.signal }).catch(() => {})
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)
      try {
        await launch()
        if (!stopping.signal.aborted) log.info({ pid: child?.pid }, 'PostgreSQL is running again')
      } catch (error) {
        if (!stopping.signal.aborted) log.error({ reason: (error as Error).message }, 'PostgreSQL does not start')
      }
    }
  }

  // Where the kernel does not end PostgreSQL with us, an exit without stop() must not leave it running.
  const onExit = () => child?.kill('SIGINT')
  process.on('exit', onExit)
  try {
    await launch()
  } catch (error) {
    process.off('exit', onExit)
    throw error
  }
  const running = keepRunning()

  async function shutDown() {
    stopping.abort()
    for (const [signal, patienceMs] of [
      ['SIGINT', FAST_SHUTDOWN_MS],
      ['SIGQUIT', IMMEDIATE_SHUTDOWN_MS],
      ['SIGKILL', IMMEDIATE_SHUTDOWN_MS],
    ] as const) {
      child?.kill(signal)
      const waited = new AbortController()
      const ended = await Promise.race([
        running.then(() => true),
        sleep(patienceMs, false, { signal: waited.signal }).catch(() => false),
      ])
      waited.abort()
      if (ended) break
      log.warn({ signal }, 'PostgreSQL does not end')
    }
    process.off('exit', onExit)
  }

  let stopped: Promise<void> | undefined
  return {
    pid: () => (child && isRunning(child) ? child.pid : undefined),
    stop: () => {
      stopped ??= shutDown()
      return stopped
    },
  }
}

function run({ command, logPath }: Server): ChildProcess {
  const log = openSync(logPath, 'a', 0o600)
  try {
    // Runs in a session of its own: a Ctrl-C meant for the server would otherwise end PostgreSQL before the last
    // answers.
    const child = spawn(command.file, command.args, {
      ...command.options,
      cwd: '/',
      detached: true,
      stdio: ['ignore', log, log],
    })
    child.on('error', () => {})
    return child
  } finally {
    closeSync(log)
  }
}

const isRunning = (child: ChildProcess) =>
  child.pid !== undefined && child.exitCode === null && child.signalCode === null

async function exitOf(child: ChildProcess | undefined) {
  if (child && isRunning(child)) await once(child, 'exit')
}

/** Recovery after a crash may take minutes, so this waits as long as the process lives. */
async function untilReady(server: Server, child: ChildProcess, mark: number) {
  for (;;) {
    if (!isRunning(child)) throw new EmbeddedError(`PostgreSQL does not start: ${await whyNot(server, child, mark)}`)
    if (await isReady(server.pgData, child.pid)) return
    await sleep(POLL_MS)
  }
}

/** PostgreSQL writes its state to the eighth line of its pid file. */
async function isReady(pgData: string, pid: number | undefined): Promise<boolean> {
  const lines = (await readFile(join(pgData, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n')
  return Number(lines[0]) === pid && lines[7]?.trim() === 'ready'
}

async function whyNot({ pgData, logPath }: Server, child: ChildProcess, mark: number): Promise<string> {
  const complaint = complaintIn(await readFrom(logPath, mark))
  if (complaint) return complaint
  if (await isDiskFull(pgData)) return reasonOf({ code: 'ENOSPC' })
  if (child.pid === undefined) return 'its program cannot be run'
  return `it ended with ${child.exitCode ?? child.signalCode}`
}

const logSize = (path: string) =>
  stat(path).then(
    ({ size }) => size,
    () => 0,
  )

async function readFrom(path: string, mark: number): Promise<string> {
  const file = await open(path).catch(() => undefined)
  if (!file) return ''
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(64 * 1024), 0, 64 * 1024, mark)
    return buffer.toString('utf8', 0, bytesRead)
  } finally {
    await file.close()
  }
}

/** The socket's lock file names a pid too, which may belong to another process by now. */
async function removeSocket(folder: string) {
  for (const name of [SOCKET_NAME, `${SOCKET_NAME}.lock`]) await rm(join(folder, name), { force: true })
}
