// The rendering process. It has an empty environment, may read nothing but its own code, and holds no secret: what it is sent is one
// slice of work, and what it says is the result.

import { loadCompiler } from './mjml.ts'
import { runStep } from './run-step.ts'
import { SEND_INTERVAL_MS, type StepBatch, type StepResult, type WorkerMessage } from './worker-protocol.ts'

const send = (message: WorkerMessage) => process.send?.(message)

async function runBatch({ steps, nowMs }: StepBatch): Promise<void> {
  // Loading is our time, not the template's.
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

/** The first use of everything compiles it; that is not to count against a template. */
const text = "{% for x in y %}{{ x | append: 'a' | date: '%Y' }}{% endfor %}{{ z | default: 'z' | escape }}"
for (const kind of ['line', 'text', 'html'] as const)
  await runStep({ do: 'render', sources: { email_body: { kind, text } }, scope: { y: [1, 2] } }, 0)

process.on('message', (slice: StepBatch) => void runBatch(slice))
// A signal to the whole group is the server's to answer: it still finishes what is under way, and ends this process then.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {})
// The server is gone, however it went.
process.on('disconnect', () => process.exit())
send({ ready: true })
