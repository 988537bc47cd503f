// RSA keys take from a tenth of a second to seconds to make. A few are made ahead, so that whoever adds a domain need not wait; who
// comes when there are none waits in turn with other organizations. One is made at a time, whoever asks for how many.

import { generateKeyPair } from 'node:crypto'
import { promisify } from 'node:util'
import { RateLimited } from '../../lib/errors.ts'
import type { OrganizationId } from '../../lib/ids.ts'

export type DkimKeyPair = { publicKey: Buffer; privatePem: string }

export type RsaKeyPool = {
  take(owner: OrganizationId): Promise<DkimKeyPair>
  /** Make keys ahead from now on. */
  fill(): void
  /** Make none ahead any more; ends when none is being made. */
  close(): Promise<void>
  stats(): { spare: number; waiting: number }
}

/** Of one organization. What it asks for beyond that is refused for now. */
export const MAX_WAITING = 10
const RETRY_AFTER_SECONDS = 10

type KeyWaiter = PromiseWithResolvers<DkimKeyPair>

export function createRsaKeyPool(size: number, makePair: () => Promise<DkimKeyPair> = makeRsaPair): RsaKeyPool {
  const spare: DkimKeyPair[] = []
  /** In the order of their turns. */
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
      // Without anybody who could be told, trying again at once would only fail again: the next request does.
      isFilling = false
      nextWaiter()?.reject(error)
    }
  }

  /** The organization whose turn it was goes behind all others. */
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

/** In a thread of its own; the encodings are made there too. */
const makeRsaPair = async (): Promise<DkimKeyPair> => {
  const { publicKey, privateKey } = await generate('rsa', {
    modulusLength: 2_048,
    publicKeyEncoding: { type: 'spki', format: 'der' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
  return { publicKey, privatePem: privateKey }
}
