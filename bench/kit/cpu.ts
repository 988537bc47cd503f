import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Of the clock that Linux counts processor time by. */
const TICKS_PER_SECOND = 100

type Times = { parent: number; own: number; ended: number }

/** In ticks; undefined for one that is gone. */
function timesOf(pid: number): Times | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // Behind the name, which can hold anything: state, parent, …
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    const at = (n: number) => Number(fields[n])
    return { parent: at(1), own: at(11) + at(12), ended: at(13) + at(14) }
  } catch {
    return undefined
  }
}

/** CPU time that a process has taken, in seconds; 0 where the system does not say. */
export const cpuSeconds = (pid: number) => (timesOf(pid)?.own ?? 0) / TICKS_PER_SECOND

/** Of the PostgreSQL of a data folder: its first process, those it started, and those that have ended since. */
export function postgresCpuSeconds(dataDir: string): number {
  const first = Number.parseInt(readFileSync(join(dataDir, 'postgres', 'postmaster.pid'), 'utf8'), 10)
  const its = timesOf(first)
  if (!its) return 0
  const others = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => timesOf(Number(name)))
  const running = others.reduce((sum, it) => sum + (it?.parent === first ? it.own : 0), 0)
  return (its.own + its.ended + running) / TICKS_PER_SECOND
}
