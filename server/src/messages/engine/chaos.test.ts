// Whatever happens in whatever order, counts are what the rows say, and no provider is asked twice for a delivery that it did not
// refuse.

import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import {
  aMessage,
  anEngine,
  anEngineWorker,
  type Call,
  cancel,
  closeRenderer,
  fakeSender,
  messageRow,
  only,
  recipients,
  tally,
} from '../../../test/engine.ts'
import type { ChannelOutcome } from '../../channels/channel.ts'
import { type VirtualClock, virtualClock } from '../../lib/clock.ts'
import type { AppId } from '../../lib/ids.ts'
import { createLog } from '../../lib/log.ts'
import { isRefused } from '../deliver/judge-outcome.ts'

let app: TestApp
let clock: VirtualClock

beforeAll(async () => {
  clock = virtualClock()
  app = await testApp({ clock })
})
afterAll(async () => {
  await app.close()
  await closeRenderer()
})

type Step =
  | { do: 'broadcast' | 'write'; to: number }
  | { do: 'run' | 'crash' | 'race'; outcomes: ChannelOutcome[] }
  | { do: 'cancel'; which: number }
  | { do: 'wait'; seconds: number }

const outcome = fc.constantFrom<ChannelOutcome>(
  { kind: 'sent' },
  { kind: 'sent', id: 'x' },
  { kind: 'retry', reason: 'busy' },
  { kind: 'retry', reason: 'quota', pausesProvider: true, afterMs: 30_000 },
  { kind: 'failed', reason: 'too large' },
  { kind: 'unknown', reason: 'no answer' },
  { kind: 'misconfigured', reason: 'bad key' },
)
const outcomes = fc.array(outcome, { minLength: 1, maxLength: 6 })
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constantFrom('broadcast' as const, 'write' as const), to: fc.nat(5) }),
  {
    arbitrary: fc.record({ do: fc.constantFrom('run' as const, 'crash' as const, 'race' as const), outcomes }),
    weight: 3,
  },
  fc.record({ do: fc.constant('cancel' as const), which: fc.nat(5) }),
  fc.record({ do: fc.constant('wait' as const), seconds: fc.constantFrom(1, 31, 600, 3_600) }),
)

/** Keeps what every address was answered, and notes when it is asked for something that it may have already. */
function watch(repeated: string[]) {
  const answered = new Map<string, ChannelOutcome | 'nothing'>()
  return (call: Call, next: () => ChannelOutcome | undefined): ChannelOutcome | Promise<ChannelOutcome> => {
    const { content, token } = call.outgoing
    const name = `${'messageId' in content ? content.messageId : ''} ${token}`
    const before = answered.get(name)
    if (before !== undefined && (before === 'nothing' || !isRefused(before))) repeated.push(name)
    const outcome = next()
    answered.set(name, outcome ?? 'nothing')
    return outcome ?? new Promise(() => {})
  }
}

async function play(appId: AppId, steps: readonly Step[]) {
  const repeated: string[] = []
  const judge = watch(repeated)
  const ids: string[] = []
  const silent = createLog('silent')
  /** A process of its own; one that crashes is answered nothing after the first few. */
  const process = (outcomes: readonly ChannelOutcome[], answers = Number.POSITIVE_INFINITY) => {
    const sender = fakeSender()
    let count = 0
    sender.otherwise = (call) => judge(call, () => (count < answers ? outcomes[count++ % outcomes.length] : undefined))
    const engine = { ...anEngine({ db: app.db, clock, sender, maxInFlight: 4 }), log: silent }
    return { worker: anEngineWorker(engine, { log: silent }), engine }
  }
  const { engine } = process([{ kind: 'sent' }])
  const people = await recipients(engine, appId, 6)

  for (const it of steps) {
    if (it.do === 'broadcast') ids.push(await aMessage(engine, appId, {}))
    if (it.do === 'write')
      ids.push(await aMessage(engine, appId, { lane: 'direct', audience: only(people[it.to]?.id as string) }))
    if (it.do === 'run') await process(it.outcomes).worker.runDue()
    if (it.do === 'race')
      await Promise.all([process(it.outcomes).worker.runDue(), process(it.outcomes).worker.runDue()])
    if (it.do === 'crash') {
      // The dead do not learn that their database is closed; others may use this process by then.
      void process(it.outcomes, 2)
        .worker.runDue()
        .catch(() => {})
      await new Promise((resolve) => setTimeout(resolve, 100))
      clock.advanceLease({ seconds: 31 })
    }
    if (it.do === 'cancel' && ids.length > 0) await cancel(engine, appId, ids[it.which % ids.length] as string)
    if (it.do === 'wait') clock.advance({ seconds: it.seconds })
    for (const id of ids) await tally(app.db, appId, id)
    expect(repeated).toEqual([])
  }
  // In the end nothing is left open.
  for (let day = 0; day < 5; day++) {
    clock.advanceLease({ seconds: 31 })
    await process([{ kind: 'sent' }]).worker.runDue()
    clock.advance({ days: 1 })
  }
  for (const id of ids) {
    const counts = await tally(app.db, appId, id)
    expect(counts.pending ?? 0, JSON.stringify(counts)).toBe(0)
    expect(counts.sending ?? 0).toBe(0)
    expect((await messageRow(app.db, appId, id)).state).toMatch(/done|canceled/)
  }
  expect(repeated).toEqual([])
}

test('counts stay what rows are, and nothing is sent twice', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 12 }), async (steps) => {
      const { id } = await app.anotherTenant()
      await play(id, [{ do: 'broadcast', to: 0 }, ...steps])
    }),
    { numRuns: 12, endOnFailure: true },
  )
})
