// One rendering thread as the rest of the server sees it, and the watch over it.

import { Worker } from 'node:worker_threads'
import { DEADLINE_MS, NOTHING, type Slice, type StepResult, type ToMain } from './work.ts'

const MEMORY_MB = 64
const LOOK_EVERY_MS = 20

/** `killedAt`: the step that took too long or too much, and with which the thread was ended. Results are those of the first steps. */
export type SliceOutcome = { results: StepResult[]; killedAt?: number; because?: string }

export type Thread = {
  /** One slice at a time. */
  run(slice: Slice): Promise<SliceOutcome>
  /** False when it was ended; a new one takes its place. */
  isAlive(): boolean
  close(): Promise<unknown>
}

export async function startThread(): Promise<Thread> {
  const progress = new Int32Array(new SharedArrayBuffer(4)).fill(NOTHING)
  const worker = new Worker(new URL('./worker.ts', import.meta.url), {
    workerData: progress,
    env: {},
    argv: [],
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MB, maxYoungGenerationSizeMb: 16, stackSizeMb: 2 },
  })
  let isAlive = true
  let why = 'could not be rendered'
  let ended: () => void = () => {}
  let heard: (message: ToMain) => void = () => {}
  worker.on('message', (message: ToMain) => heard(message))
  worker.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ERR_WORKER_OUT_OF_MEMORY') why = 'takes too much memory'
  })
  // Comes last, after all that the thread has sent.
  worker.on('exit', () => {
    isAlive = false
    ended()
  })
  // It holds the process up only while somebody waits for it.
  const whileWaited = <Result>(run: (resolve: (result: Result) => void, reject: (error: Error) => void) => void) => {
    worker.ref()
    return new Promise<Result>(run).finally(() => worker.unref())
  }

  await whileWaited<void>((resolve, reject) => {
    heard = () => resolve()
    ended = () => reject(new Error('the rendering thread did not start'))
  })

  return {
    run(slice) {
      const results: StepResult[] = []
      return whileWaited<SliceOutcome>((resolve) => {
        const watch = watchOver(progress, slice, () => void worker.terminate())
        const finish = (outcome: SliceOutcome) => {
          watch.stop()
          resolve(outcome)
        }
        heard = (message) => {
          if (!('results' in message)) return
          results.push(...message.results)
          if (message.isLast) finish({ results })
        }
        ended = () => {
          const killedAt = Math.max(results.length, Atomics.load(progress, 0))
          finish({ results, killedAt, because: watch.isLate() ? 'takes too long' : why })
        }
        if (isAlive) worker.postMessage(slice)
        else ended()
      })
    },
    isAlive: () => isAlive,
    close: () => worker.terminate(),
  }
}

/** Ends the thread when one step is under way for longer than it may be. */
function watchOver(progress: Int32Array, { steps }: Slice, end: () => void) {
  let step = NOTHING
  let sinceMs = 0
  let isLate = false
  const timer = setInterval(() => {
    const current = Atomics.load(progress, 0)
    const nowMs = performance.now()
    if (current !== step) {
      step = current
      sinceMs = nowMs
    }
    const underWay = steps[step]
    if (isLate || !underWay || nowMs - sinceMs < DEADLINE_MS[underWay.do]) return
    isLate = true
    end()
  }, LOOK_EVERY_MS)
  return { stop: () => clearInterval(timer), isLate: () => isLate }
}
