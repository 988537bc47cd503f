// Whatever is sent in whatever place, the server says no and stays as it was, or says yes and can still show it.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { create, everyKind, someReferences, update, updateNode, view } from '../../test/journeys.ts'
import { virtualClock } from '../lib/clock.ts'

let app: TestApp
const clock = virtualClock('2030-01-01T09:00:00Z')
beforeAll(async () => {
  app = await testApp({ clock })
})
afterAll(() => app.close())

type Fields = Record<string, unknown>

const HOSTILE: unknown[] = [
  null,
  true,
  -1,
  0.5,
  1e300,
  '',
  'x',
  '{{ x | nothing }}',
  '{% for',
  'constructor',
  'x'.repeat(5_000),
  [],
  [null],
  [[]],
  {},
  { kind: 'wait' },
  { constructor: 'x', toString: 5, hasOwnProperty: null },
]

/** The same value with one place of it replaced, for every place. */
function* replaced(value: unknown, by: unknown): Generator<unknown> {
  yield by
  if (Array.isArray(value))
    for (const n of value.keys()) for (const inner of replaced(value[n], by)) yield value.with(n, inner)
  else if (typeof value === 'object' && value !== null)
    for (const [name, child] of Object.entries(value))
      for (const inner of replaced(child, by)) yield { ...value, [name]: inner }
}

test('nothing that is sent is an error of the server', async () => {
  const it = await someReferences(app)
  const whole = {
    name: 'Everything',
    description: 'x',
    audience: { kind: 'segment', included_segment_ids: [it.segmentId], excluded_segment_ids: [] },
    early_exit: { rules: { on_segment: { included_segment_ids: [it.segmentId] } }, tag_on_early_exit: { a: 'b' } },
    reentry_rules: { duration_seconds: 600 },
    schedule: { start_at: '2031-01-01T00:00:00Z', stop_at: '2032-01-01T00:00:00Z' },
    // Without Liquid, which takes its time.
    nodes: everyKind(it).map((node) => (node.kind === 'tag' ? { kind: 'tag', assignments: { seen: 'yes' } } : node)),
  }
  const [patched, stepped] = [(await create(app, whole)).body, (await create(app, whole)).body]
  const asks = HOSTILE.flatMap((by, h) => [
    // Each place meets every third of them, by turns in a new journey and in an update.
    ...[...replaced(whole, by)]
      .filter((_, n) => (n + h) % 3 === 0)
      .map((body, n) => () => (n % 2 ? update(app, patched.id, body as Fields) : app.app('/journeys', { body }))),
    ...stepped.nodes.flatMap((node: { id: string }) =>
      [...replaced(node, by)]
        .filter((_, n) => (n + h) % 5 === 0)
        .map((body) => () => updateNode(app, stepped.id, node.id, body as Fields)),
    ),
  ])
  const statuses = new Set<number>()
  const work = async () => {
    for (let ask = asks.pop(); ask; ask = asks.pop()) {
      const { status, body } = await ask()
      statuses.add(status)
      if (status === 201) expect((await view(app, body.id)).body).toEqual(body)
    }
  }
  await Promise.all(Array.from({ length: 8 }, work))
  expect([...statuses].sort()).toEqual([200, 201, 400])
  for (const { id } of [patched, stepped]) expect((await view(app, id)).status).toBe(200)
})
