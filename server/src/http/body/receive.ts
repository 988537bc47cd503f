// The only place that receives bodies. Nothing is read from the socket before the lease holds memory for it: until then
// the caller's packets wait in the kernel, and the caller waits with them.

import type { IncomingMessage } from 'node:http'
import { AppError, invalid } from '../../lib/errors.ts'
import type { BodyLease } from './budget.ts'
import { LARGE_BODY_BYTES } from './parse.ts'

/** Held for a body of unknown size until it turns out to be larger. */
export const FIRST_BYTES = 16_384
/**
 * How many bytes of a large body must arrive in each `stallMs`. A slower body would not arrive within the request's
 * time anyway.
 */
const MIN_PROGRESS_BYTES = 16_384

export const tooLarge = (maxBytes: number) =>
  new AppError('too-large', { code: 'request-2', title: `The body is larger than ${maxBytes} bytes` })
const tooSlow = () =>
  new AppError('timed-out', { code: 'request-4', title: 'The body stopped arriving, or arrives too slowly' })
/** The caller has disconnected. Nobody reads the answer, but the request must end. */
const endedEarly = () => invalid('The body ended early')

export type Reception = {
  /** From the headers; undefined for chunked bodies. */
  length: number | undefined
  /** False when the bytes are still to be decompressed, so that `length` does not say how much memory they need. */
  isFinal: boolean
  maxBytes: number
  /** The most memory that the body can need. */
  mostBytes: number
  stallMs: number
}

export function receiveBody(raw: IncomingMessage, reception: Reception, lease: BodyLease): Promise<Buffer> {
  const { length, isFinal, mostBytes } = reception
  // A waiting body holds nothing or little: one of unknown size first holds a little, and in a second step all it may
  // need.
  const startsSmall = mostBytes > LARGE_BODY_BYTES && (length ?? 0) <= FIRST_BYTES
  const wait = lease.hold(isFinal && length !== undefined ? length : startsSmall ? FIRST_BYTES : mostBytes)
  return wait ? wait.then(() => receive(raw, reception, lease)) : receive(raw, reception, lease)
}

function receive(
  raw: IncomingMessage,
  { length, isFinal, maxBytes, mostBytes, stallMs }: Reception,
  lease: BodyLease,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // Node emits no more events for a caller that has already disconnected.
    if (raw.destroyed) {
      reject(endedEarly())
      return
    }
    const collected = new CollectedBytes()
    let capacity = length ?? (mostBytes > LARGE_BODY_BYTES ? FIRST_BYTES : maxBytes)
    let progress: NodeJS.Timeout | undefined

    const fail = (error: Error) => {
      // Node reads and discards the rest until the request times out: a caller that is still writing does not read an
      // answer.
      raw.removeAllListeners('data')
      raw.resume()
      clearInterval(progress)
      reject(error)
    }
    const demandProgress = () => {
      let before = collected.size
      progress = setInterval(() => {
        if (collected.size - before < MIN_PROGRESS_BYTES) fail(tooSlow())
        before = collected.size
      }, stallMs)
    }
    const growAndAdd = async (chunk: Buffer) => {
      raw.pause()
      try {
        await lease.hold(mostBytes)
        capacity = maxBytes
        collected.add(chunk, capacity)
        demandProgress()
        raw.resume()
      } catch (error) {
        fail(error as Error)
      }
    }

    raw.on('data', (chunk: Buffer) => {
      const size = collected.size + chunk.length
      if (size > maxBytes) fail(tooLarge(maxBytes))
      else if (size > capacity) void growAndAdd(chunk)
      else collected.add(chunk, capacity)
    })
    raw.on('end', () => {
      clearInterval(progress)
      if (isFinal) lease.shrink(collected.size)
      resolve(collected.bytes)
    })
    raw.on('close', () => {
      clearInterval(progress)
      reject(endedEarly())
    })
    if (capacity > LARGE_BODY_BYTES) demandProgress()
  })
}

const NOTHING = Buffer.alloc(0)

/**
 * Collects chunks in one buffer: kept as they arrive, a million chunks of one byte each would take 200 times the
 * memory.
 */
class CollectedBytes {
  size = 0
  #bytes: Buffer = NOTHING

  add(chunk: Buffer, capacity: number): void {
    const size = this.size + chunk.length
    // Most bodies are a single chunk, which needs no copy.
    if (this.size === 0) this.#bytes = chunk
    else {
      if (size > this.#bytes.length) {
        const larger = Buffer.allocUnsafe(capacity)
        larger.set(this.#bytes)
        this.#bytes = larger
      }
      this.#bytes.set(chunk, this.size)
    }
    this.size = size
  }

  get bytes(): Buffer {
    return this.#bytes.length === this.size ? this.#bytes : this.#bytes.subarray(0, this.size)
  }
}
