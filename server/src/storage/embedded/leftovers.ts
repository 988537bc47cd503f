// After a kill -9 of the server or of the postmaster, other PostgreSQL processes may still be working on the folder. A
// process is attributed to the folder only by what it does now, never by its pid alone: pids are reused, and a signal
// to an unrelated process is worse than a failed start.

import { execFile } from 'node:child_process'
import { readdir, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Log } from '../../lib/log.ts'
import { EmbeddedError } from './error.ts'

const POLL_MS = 20

/** All PostgreSQL processes that work on this folder. */
export function findServerProcesses(pgData: string): Promise<number[]> {
  return process.platform === 'linux' ? findByWorkingFolder(pgData) : findByCommand(pgData)
}

/** The working directory of PostgreSQL's processes is their data folder, even after it was moved. */
async function findByWorkingFolder(pgData: string): Promise<number[]> {
  const home = await stat(pgData).catch(() => undefined)
  if (!home) return []
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const found = await Promise.all(
    pids.map(async (pid) => {
      try {
        if ((await readFile(`/proc/${pid}/comm`, 'utf8')).trim() !== 'postgres') return []
        const { dev, ino } = await stat(`/proc/${pid}/cwd`)
        return dev === home.dev && ino === home.ino ? [Number(pid)] : []
      } catch {
        // The process has ended, or belongs to another account.
        return []
      }
    }),
  )
  return found.flat()
}

/** Without /proc only the postmaster shows its folder; its children end when it does. */
async function findByCommand(pgData: string): Promise<number[]> {
  const pid = await notedPid(pgData)
  if (pid === undefined) return []
  try {
    const { stdout } = await promisify(execFile)('ps', ['-o', 'command=', '-p', String(pid)])
    return /\/postgres\s/.test(stdout) && `${stdout.trim()} `.includes(` -D ${pgData} `) ? [pid] : []
  } catch {
    return []
  }
}

async function notedPid(pgData: string): Promise<number | undefined> {
  const text = await readFile(join(pgData, 'postmaster.pid'), 'utf8').catch(() => '')
  const pid = Number.parseInt(text, 10)
  return pid > 0 ? pid : undefined
}

/** The caller holds the lock of the data folder, so any PostgreSQL that runs on it has lost its owner. */
export async function endLeftovers(pgData: string, log: Log) {
  const first = await notedPid(pgData)
  const found = await findServerProcesses(pgData)
  if (found.length > 0) {
    log.warn({ pids: found }, 'Stopping the PostgreSQL that the previous run left behind')
    // First a fast, then an immediate shutdown by the postmaster; children without a postmaster end when they notice
    // that.
    const isFirst = (pid: number) => pid === first
    const ended =
      (await endAll(pgData, 'SIGINT', isFirst, found.some(isFirst) ? 10_000 : 1_000)) ||
      (await endAll(pgData, 'SIGQUIT', () => true, 5_000)) ||
      (await endAll(pgData, 'SIGKILL', () => true, 5_000))
    if (!ended) throw new EmbeddedError(`a PostgreSQL that works on ${pgData} cannot be ended`)
  }
  // PostgreSQL notices when the process in its pid file is gone, but not when that pid now belongs to another process.
  if (first !== undefined && isAlive(first)) await rm(join(pgData, 'postmaster.pid'), { force: true })
}

async function endAll(
  pgData: string,
  signal: NodeJS.Signals,
  who: (pid: number) => boolean,
  patienceMs: number,
): Promise<boolean> {
  let found = await findServerProcesses(pgData)
  for (const pid of found.filter(who)) send(pid, signal)
  for (const began = performance.now(); found.length > 0; found = await findServerProcesses(pgData)) {
    if (performance.now() - began > patienceMs) return false
    await sleep(POLL_MS)
  }
  return true
}

function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

const isAlive = (pid: number) => send(pid, 0)
