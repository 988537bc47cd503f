// Kept connections to one server: at most so many, each for so many mails, and for a while without any.

import type { Clock } from '../../../lib/clock.ts'
import type { TrafficSource } from '../../channel.ts'
import type { SmtpConnection, SmtpTransaction, TransactionResult } from './connection.ts'
import { createFairShares } from './fair-shares.ts'
import type { SessionFailure } from './open-session.ts'
import type { SendRate } from './pace.ts'

export type QueuedTransaction = SmtpTransaction & {
  source: TrafficSource
  /** Asked when a connection is there for it: what it gives instead of undefined, the mail is not sent. */
  hold?(): HeldBack | undefined
}

export type HeldBack = { kind: 'held'; afterMs: number }

/** Unopened: there is no connection, and none can be had. */
export type PoolResult = TransactionResult | HeldBack | ({ kind: 'unopened' } & SessionFailure)

export type SmtpPoolSettings = {
  open(): Promise<SmtpConnection | SessionFailure>
  clock: Pick<Clock, 'now'>
  connections: number
  /** Several apps use them. */
  isShared?: boolean | undefined
  pace?: SendRate | undefined
  /** After so many mails a connection is given back: servers mind long ones. */
  mailsEach?: number | undefined
  idleMs?: number | undefined
  /** How long a server that could not be reached is left alone. */
  awayMs?: number | undefined
}

export type SmtpPool = {
  deliver(mailing: QueuedTransaction): Promise<PoolResult>
  /** What waits is still served; no connection is kept. */
  close(): Promise<void>
}

type PoolTask = QueuedTransaction & { settle(result: PoolResult): void; isSecond?: boolean }

type PooledConnection = { connection: SmtpConnection; mails: number; timer?: NodeJS.Timeout }

const MAILS_EACH = 100
const IDLE_MS = 10_000
const AWAY_MS = 1_000
/** How long fewer connections are opened after the server did not want more. */
const FEWER_MS = 60_000

export function createSmtpPool(settings: SmtpPoolSettings): SmtpPool {
  const { open, clock, mailsEach = MAILS_EACH, idleMs = IDLE_MS, awayMs = AWAY_MS } = settings
  const { isShared = false, pace } = settings
  const waiting = createFairShares<PoolTask>(isShared)
  const idle: PooledConnection[] = []
  const leaving = new Set<Promise<void>>()
  /** Open, or being opened. */
  let count = 0
  let opening = 0
  let fewer: { connections: number; untilMs: number } | undefined
  let away: { failure: SessionFailure; untilMs: number } | undefined
  let isClosing = false
  let alarm: NodeJS.Timeout | undefined
  const isOver = (it: { untilMs: number } | undefined) => !it || clock.now().getTime() >= it.untilMs
  const until = (ms: number) => clock.now().getTime() + ms
  const most = () => fewer?.connections ?? settings.connections

  /** Kept connections for those that wait, then new ones. */
  function serve() {
    if (isOver(fewer)) fewer = undefined
    dropClosed()
    for (let task = idle.length > 0 && take(); task; task = idle.length > 0 && take()) {
      const slot = idle.pop() as PooledConnection
      clearTimeout(slot.timer)
      work(slot, task)
    }
    if (isTooEarly()) return
    while (waiting.wanted(most()) > opening && count < most()) openOne()
  }

  function dropClosed() {
    for (const slot of idle.splice(0)) {
      if (slot.connection.isOpen()) {
        idle.push(slot)
        continue
      }
      clearTimeout(slot.timer)
      count--
    }
  }

  /** By the pace that was set; then it is served when the time has come. */
  function isTooEarly(): boolean {
    const waitMs = pace?.waitMs() ?? 0
    if (waitMs > 0 && alarm === undefined && waiting.wanted(most()) > 0) alarm = setTimeout(ring, waitMs)
    return waitMs > 0
  }

  function ring() {
    alarm = undefined
    serve()
  }

  async function openOne() {
    count++
    opening++
    const opened = await open()
    opening--
    if (!('stage' in opened)) return work({ connection: opened, mails: 0 }, take())
    count--
    const others = count - opening
    // The server wants no more than those it has; they take what waits.
    if (others > 0) fewer = { connections: others, untilMs: until(FEWER_MS) }
    // The last of those under way decides.
    else if (opening === 0) {
      away = { failure: opened, untilMs: until(awayMs) }
      for (const { settle } of waiting.clear()) settle({ kind: 'unopened', ...opened })
    }
  }

  /** The next that may go now; on the connection that the source holds, where one is named. */
  function take(source?: TrafficSource): PoolTask | undefined {
    for (;;) {
      if (isTooEarly()) return undefined
      const task = source ? waiting.takeNext(source, most()) : waiting.take(most())
      const held = task?.hold?.()
      if (!task || !held) {
        if (task) pace?.use()
        return task
      }
      if (!source) waiting.release(task.source)
      task.settle(held)
    }
  }

  async function work(slot: PooledConnection, first: PoolTask | undefined) {
    const { connection } = slot
    for (let task = first; task; ) {
      const { source } = task
      let next: PoolTask | undefined
      const isLast = slot.mails + 1 >= mailsEach
      const result = await connection.deliver(task, () => {
        // Of the same source: should this mail hang, nobody else's hangs behind it.
        if (!isLast) next = take(source)
        return next
      })
      // That the server had let a kept connection go says nothing about this mail.
      if (slot.mails > 0 && !task.isSecond && isStale(result)) waiting.addFirst({ ...task, isSecond: true })
      else task.settle(result)
      slot.mails++
      const isOver = !connection.isOpen() || isLast
      // Nothing of it was handed over.
      if (next && isOver) waiting.addFirst(next)
      if (!next || isOver) waiting.release(source)
      if (isOver) return leave(slot)
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

  function leave({ connection }: PooledConnection) {
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
        waiting.add({ ...mailing, settle })
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

const isStale = (result: TransactionResult) =>
  result.kind === 'lost'
    ? result.isUnheard
    : result.kind === 'refused' && result.at === 'mail' && result.reply.code === 421
