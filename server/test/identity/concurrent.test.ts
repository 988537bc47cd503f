// Several clients at once, over two servers on one database: their answers and the rows they leave must be those of the
// same commands one after the other, in some order.

import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { virtualClock } from '../../src/lib/clock.ts'
import { type Answer, type Tenant, type TestApp, testApp } from '../app.ts'
import { type Bindings, matchAnswer } from './answers.ts'
import { resolve, views, writes } from './commands.ts'
import { type Command, emptyState, execute, type State } from './model.ts'
import { send } from './requests.ts'
import { expectedRows, miscountedApps, namedRows, type Row, storedRows } from './rows.ts'

const ROUNDS = process.env.CHAOS_FULL === '1' ? 3_000 : 250
const seed = process.env.SEED === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(process.env.SEED)

const clock = virtualClock()
let servers: [TestApp, TestApp]
beforeAll(async () => {
  const first = await testApp({ clock })
  servers = [first, await testApp({ clock, beside: first })]
})
afterAll(async () => {
  await servers[1].close()
  await servers[0].close()
})

type World = { state: State; bindings: Bindings }
type Asked = { command: Command; received: Pick<Answer, 'status' | 'body'> }

const seconds = () => clock.now().getTime() / 1000

/** The worlds that orders of these commands lead to, such that each answered what it did. */
function* explanations(world: World, asked: Asked[], now: number): Generator<World> {
  if (asked.length === 0) yield world
  for (const one of asked) {
    const { state, answer } = execute(world.state, one.command, now)
    const bindings = matchAnswer(answer, one.received, world.bindings)
    if (!bindings) continue
    yield* explanations(
      { state, bindings },
      asked.filter((it) => it !== one),
      now,
    )
  }
}

async function prepare(tenant: Tenant, commands: Command[]): Promise<World> {
  let world: World = { state: emptyState(), bindings: new Map([['§app', tenant.id]]) }
  for (const plan of commands) {
    clock.advance({ seconds: 1 })
    const command = resolve(plan, world.state, world.bindings)
    const { state, answer } = execute(world.state, command, seconds())
    const received = await send(servers[0], tenant, command, world.bindings)
    const bindings = matchAnswer(answer, received, world.bindings)
    if (!bindings) throw new Error(`alone: ${JSON.stringify({ command, answer, received })}`)
    world = { state, bindings }
  }
  return world
}

function explain(world: World, asked: Asked[], rows: Row[]): World | undefined {
  for (const end of explanations(world, asked, seconds()))
    if (JSON.stringify(expectedRows(end.state, end.bindings)) === JSON.stringify(namedRows(rows, end.bindings)))
      return end
  return undefined
}

const together = fc.oneof({ weight: 6, arbitrary: writes }, { weight: 1, arbitrary: views })

test('what clients do at the same time is explained by some order', { timeout: 30 * 60_000 }, async () => {
  console.log(`seed ${seed}; SEED=${seed} starts the same again`)
  const seen = new Set<number>()
  await fc.assert(
    fc.asyncProperty(
      fc.array(writes, { minLength: 2, maxLength: 10, size: 'max' }),
      fc.array(fc.record({ command: together, server: fc.constantFrom(0, 1) }), {
        minLength: 2,
        maxLength: 6,
        size: 'max',
      }),
      async (before, parallel) => {
        const tenant = await servers[0].anotherTenant()
        const world = await prepare(tenant, before)
        clock.advance({ seconds: 1 })
        const asked = await Promise.all(
          parallel.map(async ({ command: plan, server }): Promise<Asked> => {
            const command = resolve(plan, world.state, world.bindings)
            const { status, body } = await send(servers[server] as TestApp, tenant, command, world.bindings)
            return { command, received: { status, body } }
          }),
        )
        for (const { received } of asked) seen.add(received.status)
        expect(asked.filter(({ received }) => received.status >= 500)).toEqual([])
        const rows = await storedRows(servers[0].db, tenant.id)
        if (!explain(world, asked, rows)) {
          const bound = [...world.bindings].map((pair) => pair.join(' = ')).join('\n')
          throw new Error(
            `no order explains\n${asked.map((it) => JSON.stringify(it)).join('\n')}\nrows\n${rows.map((it) => JSON.stringify(it)).join('\n')}\n${bound}`,
          )
        }
      },
    ),
    { numRuns: ROUNDS, seed, endOnFailure: true },
  )
  expect(await miscountedApps(servers[0].db)).toEqual([])
  for (const status of [200, 201, 202, 400, 404, 409]) expect(seen).toContain(status)
})
