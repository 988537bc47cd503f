// Starts and supervises one rendering process. It is a process and not a thread, because a thread that runs out of
// memory can take down the whole server (seen with `{% for i in (1..3900000) %}{{ i }}{% endfor %}` under a limit of 64
// MB).

import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import {
  SEND_INTERVAL_MS,
  STEP_DEADLINE_MS,
  type StepBatch,
  type StepResult,
  TIMEOUT_MESSAGE,
  type WorkerMessage,
} from './worker-protocol.ts'

const MEMORY_MB = 64
const CHECK_INTERVAL_MS = 20
const START_TIMEOUT_MS = 20_000

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url))
const NODE_FLAGS = [
  `--max-old-space-size=${MEMORY_MB}`,
  '--max-semi-space-size=8',
  // The directories that the code is loaded from. Other files and other processes are inaccessible.
  '--permission',
  ...['../../', '../../../../node_modules/', '../../../../package.json'].map((it) => `--allow-fs-read=${path(it)}`),
]

/** `endReason` is set when the process was killed. The results are then those of the first steps. */
export type StepBatchOutcome = { results: StepResult[]; tookMs: number[]; endReason?: string }

export type WorkerProcess = {
  /** Runs one batch at a time. */
  run(slice: StepBatch): Promise<StepBatchOutcome>
  /** False after the process was killed; a new one replaces it. */
  isAlive(): boolean
  close(): void
}

export async function startWorkerProcess(): Promise<WorkerProcess> {
  const child = fork(path('./worker.ts'), [], {
    execArgv: NODE_FLAGS,
    env: {},
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
  let isAlive = true
  let heard: (message: WorkerMessage) => void = () => {}
  let ended: () => void = () => {}
  const end = () => {
    isAlive = false
    ended()
  }
  child.on('message', (message: WorkerMessage) => heard(message))
  child.on('error', end)
  child.on('exit', end)
  const kill = () => child.kill('SIGKILL')

  await keepAliveDuring(child, (resolve: (done: true) => void, reject) => {
    const timer = setTimeout(kill, START_TIMEOUT_MS)
    heard = () => {
      clearTimeout(timer)
      resolve(true)
    }
    ended = () => {
      clearTimeout(timer)
      reject(new Error('the rendering process did not start'))
    }
  })

  return {
    run: (slice) =>
      keepAliveDuring(child, (resolve: (outcome: StepBatchOutcome) => void) => {
        const results: StepResult[] = []
        const tookMs: number[] = []
        const watch = createWatchdog(slice, kill)
        heard = (message) => {
          if (!('results' in message)) return
          watch.reset()
          results.push(...message.results)
          tookMs.push(...message.tookMs)
          if (!message.isLast) return
          watch.stop()
          resolve({ results, tookMs })
        }
        ended = () => {
          watch.stop()
          resolve({ results, tookMs, endReason: watch.isLate() ? TIMEOUT_MESSAGE : 'takes too much memory' })
        }
        if (!isAlive) return ended()
        try {
          child.send(slice, (error) => error && kill())
        } catch {
          // The batch is nested too deeply or too large to be sent. The caller finds out which step is responsible.
          kill()
        }
      }),
    isAlive: () => isAlive,
    close: kill,
  }
}

/** Keeps this process alive for the child only while a result is awaited. */
function keepAliveDuring<Result>(
  child: ChildProcess,
  run: (resolve: (result: Result) => void, reject: (error: Error) => void) => void,
): Promise<Result> {
  child.ref()
  child.channel?.ref()
  return new Promise<Result>(run).finally(() => {
    child.unref()
    child.channel?.unref()
  })
}

/** Kills the process when it has sent nothing for as long as one step may take. */
function createWatchdog({ steps }: StepBatch, kill: () => void) {
  const limitMs = SEND_INTERVAL_MS + Math.max(...steps.map((step) => STEP_DEADLINE_MS[step.do]))
  let sinceMs = performance.now()
  let isLate = false
  const isOver = () => performance.now() - sinceMs >= limitMs
  const look = () => {
    if (!isOver() || isLate) return
    // A message may have arrived while this process was busy, so pending messages are read first.
    setImmediate(() => {
      if (!isOver()) return
      isLate = true
      kill()
    })
  }
  const timer = setInterval(look, CHECK_INTERVAL_MS)
  return {
    reset: () => {
      sinceMs = performance.now()
    },
    stop: () => {
      clearInterval(timer)
      // Makes any pending check find the process in time.
      sinceMs = Number.POSITIVE_INFINITY
    },
    isLate: () => isLate,
  }
}
