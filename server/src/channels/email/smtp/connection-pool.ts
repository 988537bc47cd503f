// A pool of connections to one server: limited in number, each used for a limited number of emails and closed after a
// while without any.

import type { Clock } from '../../../lib/clock.ts'
import type { TrafficSource } from '../../channel.ts'
import type { SmtpConnection, SmtpTransaction, TransactionResult } from './connection.ts'
import { createFairShares } from './fair-shares.ts'
import type { SessionFailure } from './open-session.ts'
import type { SendRate } from './pace.ts'

export type QueuedTransaction = SmtpTransaction & {
  source: TrafficSource
  /**
   * Called when a connection is available for the email. If it returns a value, the email is not sent, and that value
   * is its result.
   */
  hold?(): HeldBack | undefined
}

export type HeldBack = { kind: 'held'; afterMs: number }

/** `unopened`: there is no connection, and none can be opened. */
export type PoolResult = TransactionResult | HeldBack | ({ kind: 'unopened' } & SessionFailure)

export type SmtpPoolSettings = {
  open(): Promise<SmtpConnection | SessionFailure>
  clock: Pick<Clock, 'now'>
  connections: number
  /** Whether several apps use the connections. */
  isShared?: boolean | undefined
  pace?: SendRate | undefined
  /** A connection is closed after this many emails, because servers object to long sessions. */
  mailsEach?: number | undefined
  idleMs?: number | undefined
  /** How long no new attempt is made after the server could not be reached. */
  awayMs?: number | undefined
}

export type SmtpPool = {
  deliver(mailing: QueuedTransaction): Promise<PoolResult>
  /** Emails that wait are still sent; no connection is kept afterwards. */
  close(): Promise<void>
}

type PoolTask = QueuedTransaction & { settle(result: PoolResult): void; isSecond?: boolean }

type PooledConnection = { connection: SmtpConnection; mails: number; timer?: NodeJS.Timeout }

const MAILS_EACH = 100
const IDLE_MS = 10_000
const AWAY_MS = 1_000
/** How long fewer connections are opened after the server refused another one. */
const FEWER_MS = 60_000

export function createSmtpPool(settings: SmtpPoolSettings): SmtpPool {
  const { open, clock, mailsEach = MAILS_EACH, idleMs = IDLE_MS, awayMs = AWAY_MS } = settings
  const { isShared = false, pace } = settings
  const waiting = createFairShares<PoolTask>(isShared)
  const idle: PooledConnection[] = []
  const leaving = new Set<Promise<void>>()
  /** Connections that are open or being opened. */
  let count = 0
  let opening = 0
  let fewer: { connections: number; untilMs: number } | undefined
  let away: { failure: SessionFailure; untilMs: number } | undefined
  let isClosing = false
  let alarm: NodeJS.Timeout | undefined
  const isOver = (it: { untilMs: number } | undefined) => !it || clock.now().getTime() >= it.untilMs
  const until = (ms: number) => clock.now().getTime() + ms
  const most = () => fewer?.connections ?? settings.connections

  /** Gives waiting emails the idle connections first, then opens new ones. */
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

  /** Whether the send rate forbids sending now. If so, a timer continues when it permits. */
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
    // The server accepts no more connections than it has; those send what waits.
    if (others > 0) fewer = { connections: others, untilMs: until(FEWER_MS) }
    // If several connections are being opened, the last one decides.
    else if (opening === 0) {
      away = { failure: opened, untilMs: until(awayMs) }
      for (const { settle } of waiting.clear()) settle({ kind: 'unopened', ...opened })
    }
  }

  /** Returns the next email that may be sent now; with `source`, on the connection which that source holds. */
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
        // Only from the same source: if this email hangs, nobody else's hangs behind it.
        if (!isLast) next = take(source)
        return next
      })
      // If the server had closed an idle connection, that says nothing about this email.
      if (slot.mails > 0 && !task.isSecond && isStale(result)) waiting.addFirst({ ...task, isSecond: true })
      else task.settle(result)
      slot.mails++
      const isOver = !connection.isOpen() || isLast
      // Nothing of the next email was handed over.
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
