// The rendering process. It has an empty environment, can read only its own code, and holds no secrets: it receives
// batches of work and returns their results.

import { loadCompiler } from './mjml.ts'
import { runStep } from './run-step.ts'
import { SEND_INTERVAL_MS, type StepBatch, type StepResult, type WorkerMessage } from './worker-protocol.ts'

const send = (message: WorkerMessage) => process.send?.(message)

async function runBatch({ steps, nowMs }: StepBatch): Promise<void> {
  // The time for loading is not charged to the template.
  if (steps.some((step) => step.do === 'compile'))
    await loadCompiler().then(() => send({ results: [], tookMs: [], isLast: false }))
  let results: StepResult[] = []
  let tookMs: number[] = []
  let sentMs = performance.now()
  let beganMs = sentMs
  for (const [index, step] of steps.entries()) {
    results.push(await runStep(step, nowMs))
    const endedMs = performance.now()
    tookMs.push(endedMs - beganMs)
    beganMs = endedMs
    if (endedMs - sentMs < SEND_INTERVAL_MS || index === steps.length - 1) continue
    send({ results, tookMs, isLast: false })
    results = []
    tookMs = []
    sentMs = endedMs
  }
  send({ results, tookMs, isLast: true })
}

/** The first use of each code path compiles it, which must not be charged to a template. */
const text = "{% for x in y %}{{ x | append: 'a' | date: '%Y' }}{% endfor %}{{ z | default: 'z' | escape }}"
for (const kind of ['line', 'text', 'html'] as const)
  await runStep({ do: 'render', sources: { email_body: { kind, text } }, scope: { y: [1, 2] } }, 0)

process.on('message', (slice: StepBatch) => void runBatch(slice))
// A signal to the process group is for the server to handle: it finishes its work and then ends this process.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {})
// The server has exited, for whatever reason.
process.on('disconnect', () => process.exit())
send({ ready: true })
