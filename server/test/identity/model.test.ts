// One client: every answer is the model's, and afterwards every row is.

import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { virtualClock } from '../../src/lib/clock.ts'
import { type Tenant, type TestApp, testApp } from '../app.ts'
import { type Bindings, matchAnswer } from './answers.ts'
import { resolve, views, writes } from './commands.ts'
import { type Command, emptyState, execute, type State } from './model.ts'
import { send } from './requests.ts'
import { expectedRows, miscountedApps, namedRows, storedRows } from './rows.ts'

const RUNS = process.env.CHAOS_FULL === '1' ? 2_000 : 100
const MAX_COMMANDS = 60
const seed = process.env.SEED === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(process.env.SEED)

const clock = virtualClock()
let app: TestApp
beforeAll(async () => {
  app = await testApp({ clock })
})
afterAll(() => app.close())

type Model = { state: State; bindings: Bindings }

let executed = 0
const kinds = new Map<string, number>()

class Step implements fc.AsyncCommand<Model, Tenant> {
  readonly command: Command
  constructor(command: Command) {
    this.command = command
  }
  check() {
    return true
  }
  async run(model: Model, tenant: Tenant) {
    clock.advance({ seconds: 1 })
    const command = resolve(this.command, model.state, model.bindings)
    const expected = execute(model.state, command, clock.now().getTime() / 1000)
    const received = await send(app, tenant, command, model.bindings)
    const bindings = matchAnswer(expected.answer, received, model.bindings)
    if (!bindings) {
      const { status, body } = received
      throw new Error(
        `${JSON.stringify(command)}\nexpected ${JSON.stringify(expected.answer)}\nreceived ${JSON.stringify({ status, body })}`,
      )
    }
    model.state = expected.state
    model.bindings = bindings
    executed++
    const outcome = `${command.kind}: ${received.status}`
    kinds.set(outcome, (kinds.get(outcome) ?? 0) + 1)
  }
  toString() {
    return JSON.stringify(this.command)
  }
}

const steps = fc.oneof({ weight: 5, arbitrary: writes }, { weight: 1, arbitrary: views }).map((it) => new Step(it))

test('every answer and every row is what the model says', { timeout: 30 * 60_000 }, async () => {
  console.log(`seed ${seed}; SEED=${seed} runs the same again`)
  await fc.assert(
    fc.asyncProperty(fc.commands([steps], { maxCommands: MAX_COMMANDS, size: 'max' }), async (commands) => {
      const tenant = await app.anotherTenant()
      const model: Model = { state: emptyState(), bindings: new Map([['§app', tenant.id]]) }
      await fc.asyncModelRun(() => ({ model, real: tenant }), commands)
      const rows = await storedRows(app.db, tenant.id)
      expect(namedRows(rows, model.bindings)).toEqual(expectedRows(model.state, model.bindings))
      expect(await miscountedApps(app.db)).toEqual([])
    }),
    { numRuns: RUNS, seed, endOnFailure: false },
  )
  console.log(`${executed} commands`)
  if (process.env.VERBOSE === '1')
    console.log(
      [...kinds]
        .sort()
        .map(([kind, n]) => `${n}\t${kind}`)
        .join('\n'),
    )
  // The model proves nothing about what is never tried.
  for (const status of [200, 201, 202, 400, 404, 409])
    expect([...kinds.keys()].some((kind) => kind.endsWith(`: ${status}`))).toBe(true)
})
