// When PostgreSQL runs on this machine, lowers the priority of one of its processes in favor of others.

import { readFileSync, writeFileSync } from 'node:fs'
import { setPriority } from 'node:os'
import type pg from 'pg'

/** A socket in a folder is always local. */
export const isOnThisMachine = ({ host }: pg.ClientConfig) => host?.startsWith('/') ?? false

export function lowerPriority(pid: number | undefined, niceness: number) {
  if (!pid) return
  try {
    setPriority(pid, niceness)
    // Linux schedules sessions against each other before the processes in them, and each PostgreSQL process has its own
    // session.
    if (isSessionOfItsOwn(pid)) writeFileSync(`/proc/${pid}/autogroup`, String(niceness))
  } catch {
    // We may not change it: PostgreSQL belongs to another user or runs in a container, or this is not Linux.
  }
}

/** The session is the fourth field after the process name, which may contain any characters. */
const isSessionOfItsOwn = (pid: number) =>
  Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ')[3]) === pid
