// Channels: CPU time of the sending process per message, against the libraries that one would take otherwise, sending the
// same content to the same kind of sink in the same run, interleaved, median of the rounds.

import { fork } from 'node:child_process'
import { ask, reply } from '../kit/processes.ts'
import { median, type Row, readOptions, report, round } from '../kit/report.ts'
import type { Contender, Measured } from './sender.ts'
import type { Sinks } from './sink.ts'

const options = readOptions({ rounds: 5, slices: 6 })

const PAIRS: { name: string; ours: Contender; reference: Contender; goal: number }[] = [
  { name: 'APNs against @parse/node-apn', ours: 'apns', reference: 'node-apn', goal: 2 },
  { name: 'web push against web-push', ours: 'web push', reference: 'web-push', goal: 2 },
]

const start = (file: string) => fork(new URL(file, import.meta.url), { stdio: 'inherit' })

const sink = start('./sink.ts')
const sinks = await reply<Sinks>(sink)
const rows: Row[] = []
for (const { name, ours, reference, goal } of PAIRS) {
  const sides = await Promise.all(
    [ours, reference].map(async (contender) => {
      const child = start('./sender.ts')
      await ask(child, { contender, sinks })
      return { child, measured: [] as Measured[] }
    }),
  )
  for (let n = 0; n < options.rounds; n++)
    for (const { child, measured } of sides) measured.push(await ask<Measured>(child, { slices: options.slices }))
  for (const { child } of sides) child.kill()
  const of = (side: number, figure: keyof Measured) => median((sides[side]?.measured ?? []).map((it) => it[figure]))
  const [cpu, referenceCpu] = [of(0, 'cpuMicroseconds'), of(1, 'cpuMicroseconds')]
  rows.push({
    name,
    ratio: round(referenceCpu / cpu),
    goal,
    cpuMicroseconds: round(cpu, 0),
    referenceCpuMicroseconds: round(referenceCpu, 0),
    perSecond: round(of(0, 'perSecond'), 0),
    referencePerSecond: round(of(1, 'perSecond'), 0),
  })
}
sink.kill()
await report(rows, options.json)
