// Limits the memory for request bodies. A body holds its bytes from before the first one is read until its request is
// answered, so that bodies in progress, and what is built from them, stay within a budget whatever callers do. Small
// and large bodies have separate budgets, so that small ones never wait behind large ones. Each address has a share of
// each budget, so that an address which starts bodies and never finishes them uses up only its own share.

import { BodiesBusy } from '../../lib/errors.ts'
import { addressGroup } from '../../lib/networks.ts'

export type BodyBudgetOptions = {
  /** Bytes of all bodies in progress; half of them are for small bodies. */
  bytes: number
  /** Bodies larger than this count as large. */
  largeBytes: number
  /** How long a body waits for memory before it is refused. */
  waitMs: number
}

/**
 * The part of each budget that one address may hold. Until it is answered, a large body takes about ten times its size
 * in memory, and two bodies of 1 MB at a time are enough to keep the database busy.
 */
const SHARE = 1 / 8
const SMALL_PART = 1 / 2
/** A waiting body already occupies its first packets, about 64 KB. Beyond these numbers bodies are refused at once. */
const MAX_WAITING = 1_024
const MAX_WAITING_PER_ADDRESS = 256

export type BodyBudgetStats = { small_bytes: number; large_bytes: number; waiting: number; refused: number }

export type BodyBudget = {
  /** Creates the lease of one request; it holds nothing yet. */
  lease(address: string): BodyLease
  stats(): BodyBudgetStats
}

export type BodyLease = {
  /** Bytes held now. */
  readonly bytes: number
  /**
   * Holds this many bytes, in place of what was held before. Returns undefined when they are held at once, otherwise a
   * promise. Rejects with `BodiesBusy` when they do not become free in time.
   */
  hold(bytes: number): Promise<void> | undefined
  /** Returns bytes that turned out not to be needed. */
  shrink(bytes: number): void
  release(): void
}

type ByteWaiter = { bytes: number; grant: () => void; timer: NodeJS.Timeout }
type ByteHolder = { group: string; used: number; waiting: Set<ByteWaiter> }

export function createBodyBudget({ bytes, largeBytes, waitMs }: BodyBudgetOptions): BodyBudget {
  const small = new BytePool(bytes * SMALL_PART, waitMs)
  const large = new BytePool(bytes * (1 - SMALL_PART), waitMs)
  return {
    lease: (address) => new BodyBudgetLease(address, (size) => (size > largeBytes ? large : small)),
    stats: () => ({
      small_bytes: small.used,
      large_bytes: large.used,
      waiting: small.waiting + large.waiting,
      refused: small.refused + large.refused,
    }),
  }
}

class BodyBudgetLease implements BodyLease {
  bytes = 0
  readonly #address: string
  readonly #poolFor: (bytes: number) => BytePool
  #group: string | undefined
  #pool: BytePool | undefined
  #isReleased = false

  constructor(address: string, poolFor: (bytes: number) => BytePool) {
    this.#address = address
    this.#poolFor = poolFor
  }

  hold(bytes: number): Promise<void> | undefined {
    this.#group ??= addressGroup(this.#address)
    const pool = this.#poolFor(bytes)
    const needed = Math.min(bytes, pool.share)
    if (pool.take(this.#group, needed)) {
      this.#replace(pool, needed)
      return undefined
    }
    // The lease keeps what it holds while it waits. This cannot deadlock: holders of the bytes it waits for never wait
    // for bytes of the smaller kind.
    return pool.wait(this.#group, needed).then(() => this.#replace(pool, needed))
  }

  #replace(pool: BytePool, bytes: number) {
    const before = this.#pool
    if (before) before.giveBack(this.#group as string, this.bytes)
    this.#pool = pool
    this.bytes = bytes
    if (this.#isReleased) this.release()
  }

  shrink(bytes: number): void {
    if (!this.#pool || bytes >= this.bytes) return
    this.#pool.giveBack(this.#group as string, this.bytes - bytes)
    this.bytes = bytes
  }

  release(): void {
    this.#isReleased = true
    this.shrink(0)
    this.#pool = undefined
  }
}

/** When all addresses want more than there is, they take turns. */
class BytePool {
  used = 0
  waiting = 0
  refused = 0
  readonly share: number
  readonly #bytes: number
  readonly #waitMs: number
  readonly #holders = new Map<string, ByteHolder>()
  /** Addresses with waiting bodies, in the order of their turns. */
  readonly #rota = new Set<ByteHolder>()
  /** True while an address within its share waits for others to return bytes; newcomers must not overtake it. */
  #isFull = false

  constructor(bytes: number, waitMs: number) {
    this.#bytes = bytes
    this.#waitMs = waitMs
    this.share = Math.floor(bytes * SHARE)
  }

  /** Takes the bytes if they are free and nobody is waiting for them. */
  take(group: string, bytes: number): boolean {
    const holder = this.#holders.get(group)
    const used = holder?.used ?? 0
    if (this.#isFull || used + bytes > this.share || this.used + bytes > this.#bytes) return false
    if (holder && holder.waiting.size > 0) return false
    if (holder) holder.used = used + bytes
    else this.#holders.set(group, { group, used: bytes, waiting: new Set() })
    this.used += bytes
    return true
  }

  wait(group: string, bytes: number): Promise<void> {
    let holder = this.#holders.get(group)
    if (!holder) {
      holder = { group, used: 0, waiting: new Set() }
      this.#holders.set(group, holder)
    }
    const own = holder
    if (this.waiting >= MAX_WAITING || own.waiting.size >= MAX_WAITING_PER_ADDRESS)
      return Promise.reject(this.#refusal(own, bytes))
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#leave(own, waiter)
        reject(this.#refusal(own, bytes))
        this.#grantWaiting()
      }, this.#waitMs)
      const waiter: ByteWaiter = { bytes, grant: resolve, timer }
      own.waiting.add(waiter)
      this.#rota.add(own)
      this.waiting++
      this.#grantWaiting()
    })
  }

  giveBack(group: string, bytes: number): void {
    const holder = this.#holders.get(group)
    if (!holder || bytes === 0) return
    holder.used -= bytes
    this.used -= bytes
    if (this.#rota.size > 0) this.#grantWaiting()
    this.#forgetIdle(holder)
  }

  #grantWaiting() {
    this.#isFull = false
    for (const holder of this.#rota) {
      const [next] = holder.waiting
      if (!next || holder.used + next.bytes > this.share) continue
      if (this.used + next.bytes > this.#bytes) {
        this.#isFull = true
        return
      }
      holder.used += next.bytes
      this.used += next.bytes
      this.#leave(holder, next)
      // The holder moves behind the others; the loop reaches it again.
      if (this.#rota.delete(holder) && holder.waiting.size > 0) this.#rota.add(holder)
      next.grant()
    }
  }

  #leave(holder: ByteHolder, waiter: ByteWaiter) {
    clearTimeout(waiter.timer)
    if (holder.waiting.delete(waiter)) this.waiting--
    if (holder.waiting.size === 0) this.#rota.delete(holder)
    this.#forgetIdle(holder)
  }

  #forgetIdle(holder: ByteHolder) {
    if (holder.used === 0 && holder.waiting.size === 0) this.#holders.delete(holder.group)
  }

  #refusal(holder: ByteHolder, bytes: number): BodiesBusy {
    this.refused++
    const isOwnFault = holder.used + bytes > this.share
    this.#forgetIdle(holder)
    return new BodiesBusy(isOwnFault ? 'address' : 'server', Math.max(1, Math.ceil(this.#waitMs / 1_000)))
  }
}
