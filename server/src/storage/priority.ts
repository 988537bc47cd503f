// Where PostgreSQL runs on this machine, a process of it can be told to leave the processor to whoever else wants it.

import { readFileSync, writeFileSync } from 'node:fs'
import { setPriority } from 'node:os'
import type pg from 'pg'

/** A socket in a folder leads no further. */
export const isOnThisMachine = ({ host }: pg.ClientConfig) => host?.startsWith('/') ?? false

export function lowerPriority(pid: number | undefined, niceness: number) {
  if (!pid) return
  try {
    setPriority(pid, niceness)
    // Linux weighs sessions against each other before the processes in them, and PostgreSQL gives each of its processes one.
    if (isSessionOfItsOwn(pid)) writeFileSync(`/proc/${pid}/autogroup`, String(niceness))
  } catch {
    // Not ours to change: the PostgreSQL of somebody else, one in a container, or not Linux.
  }
}

/** The session is the fourth field behind the name, which may hold anything. */
const isSessionOfItsOwn = (pid: number) =>
  Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ')[3]) === pid
