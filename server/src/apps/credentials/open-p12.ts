// Certificates come from Apple's Keychain as p12 files, often with ciphers that OpenSSL no longer opens (40-bit RC2).

import { Worker } from 'node:worker_threads'
import { RateLimited } from '../../lib/errors.ts'
import { createFairSlots, QueueFull } from '../../lib/fair-slots.ts'

export type P12Request = { file: Uint8Array; password: string }

/** `subjectId` is the UID that Apple writes into the subject: the bundle id, or the push id of a website. */
export type OpenedP12 = { key: string; certificate: string; subjectId: string | null }

export type P12Problem = 'not a p12' | 'not opened' | 'no pair' | 'too many rounds' | 'too long'
export type P12Outcome = OpenedP12 | { problem: P12Problem }

/** A typical file takes a tenth of a second; one with the maximum number of rounds may take seconds. */
const PATIENCE_MS = 5_000
/**
 * Two files are opened at once, at most one per organization, so an organization that sends many delays only itself.
 * Three more of its files may wait.
 */
const slots = createFairSlots({ slots: 2, maxWaitingPerOwner: 3 })

/**
 * `owner` is the organization that the file belongs to. Throws `RateLimited` when too many of its files are waiting.
 */
export const openP12 = (owner: string, file: Uint8Array, password: string): Promise<P12Outcome> =>
  slots
    .run(owner, () => openInThread({ file, password }))
    .catch((error) => {
      throw error instanceof QueueFull ? new RateLimited(PATIENCE_MS / 1000) : error
    })

function openInThread(workerData: P12Request): Promise<P12Outcome> {
  const worker = new Worker(new URL('./p12-worker.ts', import.meta.url), {
    workerData,
    env: {},
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: 64 },
  })
  const { promise, resolve } = Promise.withResolvers<P12Outcome>()
  const deadline = setTimeout(() => resolve({ problem: 'too long' }), PATIENCE_MS)
  worker.once('message', resolve)
  // Out of memory, or something in the file that the parser did not expect.
  worker.once('error', () => resolve({ problem: 'not opened' }))
  return promise.finally(async () => {
    clearTimeout(deadline)
    await worker.terminate()
  })
}
