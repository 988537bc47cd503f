// One rendering process as the server sees it, and the watch over it. A process and not a thread: a thread that runs out of memory can
// take the whole server with it (seen with `{% for i in (1..3900000) %}{{ i }}{% endfor %}` under a limit of 64 MB).

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
  // What the code itself is read from; everything else, and every other process, is out of reach.
  '--permission',
  ...['../../', '../../../../node_modules/', '../../../../package.json'].map((it) => `--allow-fs-read=${path(it)}`),
]

/** `because`: why the process was ended. Results are those of the first steps then. */
export type StepBatchOutcome = { results: StepResult[]; tookMs: number[]; endReason?: string }

export type WorkerProcess = {
  /** One slice at a time. */
  run(slice: StepBatch): Promise<StepBatchOutcome>
  /** False when it was ended; a new one takes its place. */
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
          // Too deep, or too large, to be sent at all; whoever asked finds out which of the steps it is.
          kill()
        }
      }),
    isAlive: () => isAlive,
    close: kill,
  }
}

/** A process that nobody waits for does not keep this one from ending. */
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

/** Ends the process when it has said nothing for as long as one step may take. */
function createWatchdog({ steps }: StepBatch, kill: () => void) {
  const limitMs = SEND_INTERVAL_MS + Math.max(...steps.map((step) => STEP_DEADLINE_MS[step.do]))
  let sinceMs = performance.now()
  let isLate = false
  const isOver = () => performance.now() - sinceMs >= limitMs
  const look = () => {
    if (!isOver() || isLate) return
    // It may have spoken while this process was busy with something else: what has come in is read first.
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
      // Whatever was to be looked at later is over.
      sinceMs = Number.POSITIVE_INFINITY
    },
    isLate: () => isLate,
  }
}
