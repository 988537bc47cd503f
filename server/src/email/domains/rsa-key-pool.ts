// Generating an RSA key takes from a tenth of a second to seconds. A few are generated ahead, so that adding a domain
// does not have to wait. When none are left, organizations take turns. Only one key is generated at a time.

import { generateKeyPair } from 'node:crypto'
import { promisify } from 'node:util'
import { RateLimited } from '../../lib/errors.ts'
import type { OrganizationId } from '../../lib/ids.ts'

export type DkimKeyPair = { publicKey: Buffer; privatePem: string }

export type RsaKeyPool = {
  take(owner: OrganizationId): Promise<DkimKeyPair>
  /** Starts generating keys ahead. */
  fill(): void
  /** Stops generating ahead. Resolves when no key is being generated. */
  close(): Promise<void>
  stats(): { spare: number; waiting: number }
}

/** Per organization. Requests beyond this are refused for now. */
export const MAX_WAITING = 10
const RETRY_AFTER_SECONDS = 10

type KeyWaiter = PromiseWithResolvers<DkimKeyPair>

export function createRsaKeyPool(size: number, makePair: () => Promise<DkimKeyPair> = makeRsaPair): RsaKeyPool {
  const spare: DkimKeyPair[] = []
  /** Ordered by whose turn is next. */
  const waiting = new Map<OrganizationId, KeyWaiter[]>()
  let isFilling = false
  let making: Promise<void> | undefined

  const isNeeded = () => waiting.size > 0 || (isFilling && spare.length < size)

  function makeNeeded(): void {
    if (making || !isNeeded()) return
    making = makeOne().finally(() => {
      making = undefined
      makeNeeded()
    })
  }

  async function makeOne(): Promise<void> {
    try {
      const pair = await makePair()
      const waiter = nextWaiter()
      if (waiter) waiter.resolve(pair)
      else spare.push(pair)
    } catch (error) {
      // When nobody is waiting for the error, an immediate retry would only fail again. The next request retries.
      isFilling = false
      nextWaiter()?.reject(error)
    }
  }

  /** The organization that was served moves to the end of the line. */
  function nextWaiter(): KeyWaiter | undefined {
    const [turn] = waiting
    if (!turn) return undefined
    const [owner, waiters] = turn
    waiting.delete(owner)
    const waiter = waiters.shift()
    if (waiters.length > 0) waiting.set(owner, waiters)
    return waiter
  }

  return {
    take(owner) {
      const pair = spare.shift()
      const waiters = waiting.get(owner) ?? []
      if (!pair && waiters.length >= MAX_WAITING) return Promise.reject(new RateLimited(RETRY_AFTER_SECONDS))
      const waiter = Promise.withResolvers<DkimKeyPair>()
      if (pair) waiter.resolve(pair)
      else {
        waiters.push(waiter)
        waiting.set(owner, waiters)
      }
      makeNeeded()
      return waiter.promise
    },
    fill() {
      isFilling = true
      makeNeeded()
    },
    async close() {
      isFilling = false
      await making
    },
    stats: () => ({ spare: spare.length, waiting: [...waiting.values()].reduce((sum, list) => sum + list.length, 0) }),
  }
}

const generate = promisify(generateKeyPair)

/** Node.js generates and encodes the pair in its thread pool. */
const makeRsaPair = async (): Promise<DkimKeyPair> => {
  const { publicKey, privateKey } = await generate('rsa', {
    modulusLength: 2_048,
    publicKeyEncoding: { type: 'spki', format: 'der' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
  return { publicKey, privatePem: privateKey }
}
