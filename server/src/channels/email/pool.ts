// Kept connections to one server: at most so many, each for so many mails, and for a while without any.

import type { Clock } from '../../lib/clock.ts'
import type { Connection, Exchange, Mail } from './connection.ts'
import type { Unopened } from './open-session.ts'

export type Mailing = Mail & {
  /** Asked when a connection is there for it: what it gives instead of undefined, the mail is not sent. */
  hold?(): Held | undefined
}

export type Held = { kind: 'held'; afterMs: number }

/** Unopened: there is no connection, and none can be had. */
export type Result = Exchange | Held | ({ kind: 'unopened' } & Unopened)

export type PoolSettings = {
  open(): Promise<Connection | Unopened>
  clock: Pick<Clock, 'now'>
  connections: number
  /** After so many mails a connection is given back: servers mind long ones. */
  mailsEach?: number | undefined
  idleMs?: number | undefined
  /** How long a server that could not be reached is left alone. */
  awayMs?: number | undefined
}

export type Pool = {
  deliver(mailing: Mailing): Promise<Result>
  /** What waits is still served; no connection is kept. */
  close(): Promise<void>
}

type Task = Mailing & { settle(result: Result): void; isSecond?: boolean }

type Slot = { connection: Connection; mails: number; timer?: NodeJS.Timeout }

const MAILS_EACH = 100
const IDLE_MS = 10_000
const AWAY_MS = 1_000
/** How long fewer connections are opened after the server did not want more. */
const FEWER_MS = 60_000

export function createPool(settings: PoolSettings): Pool {
  const { open, clock, mailsEach = MAILS_EACH, idleMs = IDLE_MS, awayMs = AWAY_MS } = settings
  const waiting: Task[] = []
  const idle: Slot[] = []
  const leaving = new Set<Promise<void>>()
  /** Open, or being opened. */
  let count = 0
  let opening = 0
  let fewer: { connections: number; untilMs: number } | undefined
  let away: { failure: Unopened; untilMs: number } | undefined
  let isClosing = false
  const isOver = (it: { untilMs: number } | undefined) => !it || clock.now().getTime() >= it.untilMs
  const until = (ms: number) => clock.now().getTime() + ms

  /** Kept connections for those that wait, then new ones. */
  function serve() {
    for (let slot = waiting.length > 0 && idle.pop(); slot; slot = waiting.length > 0 && idle.pop()) {
      clearTimeout(slot.timer)
      if (slot.connection.isOpen()) work(slot)
      else count--
    }
    if (isOver(fewer)) fewer = undefined
    while (waiting.length > opening && count < (fewer?.connections ?? settings.connections)) openOne()
  }

  async function openOne() {
    count++
    opening++
    const opened = await open()
    opening--
    if (!('stage' in opened)) return work({ connection: opened, mails: 0 })
    count--
    const others = count - opening
    // The server wants no more than those it has; they take what waits.
    if (others > 0) fewer = { connections: others, untilMs: until(FEWER_MS) }
    // The last of those under way decides.
    else if (opening === 0) {
      away = { failure: opened, untilMs: until(awayMs) }
      for (const { settle } of waiting.splice(0)) settle({ kind: 'unopened', ...opened })
    }
  }

  /** The next that may go now. */
  function take(): Task | undefined {
    for (let task = waiting.shift(); task; task = waiting.shift()) {
      const held = task.hold?.()
      if (!held) return task
      task.settle(held)
    }
    return undefined
  }

  async function work(slot: Slot) {
    const { connection } = slot
    for (let task = take(); task; ) {
      let next: Task | undefined
      const isLast = slot.mails + 1 >= mailsEach
      const result = await connection.deliver(task, () => {
        if (!isLast) next = take()
        return next
      })
      // That the server had let a kept connection go says nothing about this mail.
      if (slot.mails > 0 && !task.isSecond && isStale(result)) waiting.unshift({ ...task, isSecond: true })
      else task.settle(result)
      slot.mails++
      if (!connection.isOpen() || isLast) {
        // Nothing of it was handed over.
        if (next) waiting.unshift(next)
        return leave(slot)
      }
      task = next ?? take()
    }
    if (isClosing) return leave(slot)
    slot.timer = setTimeout(() => {
      idle.splice(idle.indexOf(slot), 1)
      leave(slot)
    }, idleMs)
    slot.timer.unref()
    idle.push(slot)
  }

  function leave({ connection }: Slot) {
    count--
    const left = connection.isOpen() ? connection.quit() : Promise.resolve()
    leaving.add(left)
    left.then(() => leaving.delete(left))
    serve()
  }

  return {
    deliver(mailing) {
      if (away && !isOver(away)) return Promise.resolve({ kind: 'unopened', ...away.failure })
      away = undefined
      return new Promise((settle) => {
        waiting.push({ ...mailing, settle })
        serve()
      })
    },
    async close() {
      isClosing = true
      for (const slot of idle.splice(0)) {
        clearTimeout(slot.timer)
        leave(slot)
      }
      await Promise.all(leaving)
    },
  }
}

const isStale = (result: Exchange) =>
  result.kind === 'lost'
    ? result.isUnheard
    : result.kind === 'refused' && result.at === 'mail' && result.reply.code === 421
