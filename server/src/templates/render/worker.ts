// The rendering thread. It has an empty environment, no way to the database and no secret in its memory.

import { parentPort, workerData } from 'node:worker_threads'
import { doStep } from './do-step.ts'
import { loadCompiler } from './mjml.ts'
import { NOTHING, type Progress, type Slice, type StepResult, type ToMain } from './work.ts'

/** Results go back at least so often: what is lost when the thread is ended has to be done again. */
const SEND_EVERY_MS = 50

const progress = workerData as Progress
const say = (message: ToMain) => parentPort?.postMessage(message)

async function doSlice({ steps, nowMs }: Slice): Promise<void> {
  // Loading is our time, not the template's.
  if (steps.some((step) => step.do === 'compile')) await loadCompiler()
  let results: StepResult[] = []
  let sentMs = performance.now()
  for (const [index, step] of steps.entries()) {
    Atomics.store(progress, 0, index)
    results.push(await doStep(step, nowMs))
    if (performance.now() - sentMs < SEND_EVERY_MS || index === steps.length - 1) continue
    say({ results, isLast: false })
    results = []
    sentMs = performance.now()
  }
  Atomics.store(progress, 0, NOTHING)
  say({ results, isLast: true })
}

/** The first use of everything compiles it; that is not to count against a template. */
const text = "{% for x in y %}{{ x | append: 'a' | date: '%Y' }}{% endfor %}{{ z | default: 'z' | escape }}"
for (const kind of ['line', 'text', 'html'] as const)
  await doStep({ do: 'render', sources: { email_body: { kind, text } }, scope: { y: [1, 2] } }, 0)

parentPort?.on('message', (slice: Slice) => void doSlice(slice))
say({ ready: true })
