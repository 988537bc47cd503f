// Certificates come from Apple's Keychain as p12 files, often under ciphers that OpenSSL no longer opens (RC2 of 40 bits).

import { Worker } from 'node:worker_threads'
import { unavailable } from '../lib/errors.ts'

export type P12Request = { file: Uint8Array; password: string }

/** `subjectId` is the UID that Apple writes into the subject: the bundle id, or the push id of a website. */
export type OpenedP12 = { key: string; certificate: string; subjectId: string | null }

export type P12Problem = 'not a p12' | 'not opened' | 'no pair' | 'too long'
export type P12Outcome = OpenedP12 | { problem: P12Problem }

/** A usual file takes a tenth of a second; one may ask for billions of rounds. */
const PATIENCE_MS = 5_000
/** One file after the other: whoever sends many occupies one core, and nobody waits longer than a request may take. */
const MAX_WAITING = 8

let waiting = 0
let last: Promise<unknown> = Promise.resolve()

export function openP12(file: Uint8Array, password: string, patienceMs = PATIENCE_MS): Promise<P12Outcome> {
  if (waiting >= MAX_WAITING) throw unavailable()
  waiting++
  const opened = last
    .then(() => openInThread({ file, password }, patienceMs))
    .finally(() => {
      waiting--
    })
  last = opened.catch(() => {})
  return opened
}

function openInThread(workerData: P12Request, patienceMs: number): Promise<P12Outcome> {
  const worker = new Worker(new URL('./p12-worker.ts', import.meta.url), {
    workerData,
    env: {},
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: 64 },
  })
  const { promise, resolve } = Promise.withResolvers<P12Outcome>()
  const deadline = setTimeout(() => resolve({ problem: 'too long' }), patienceMs)
  worker.once('message', resolve)
  // Out of memory, or something in the file that no parser expected.
  worker.once('error', () => resolve({ problem: 'not opened' }))
  return promise.finally(async () => {
    clearTimeout(deadline)
    await worker.terminate()
  })
}
