import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newId } from '../../lib/ids.ts'
import { createRenderer, type Renderer } from './renderer.ts'
import type { TemplateSources } from './source.ts'

const now = new Date('2030-01-01T00:00:00Z')
let renderer: Renderer
beforeAll(() => {
  renderer = createRenderer({ processes: 2 })
})
afterAll(() => renderer.close())

const template = (text: string, kind: 'text' | 'html' = 'text'): TemplateSources => ({ text: { kind, text } })
const greeting = template('Hello {{ n }}')
const item = (n: number, it = greeting) => ({ template: it, context: { n } })
const hello = (n: number) => ({ ok: true, texts: { text: `Hello ${n}` } })
/** The engine's own limits do not see this one: reading an expression of so many parts is what takes the time. */
const stuck = () => template(`{% if ${'a and '.repeat(80_000)}a %}{% endif %}`)
const LATE = { ok: false, reason: 'render_failed', field: 'text', message: 'takes too long' }

describe('rendering', () => {
  test('answers in the order of the items, whatever their number', async () => {
    const results = await renderer.render(
      newId(),
      Array.from({ length: 250 }, (_, n) => item(n)),
      now,
    )
    expect(results).toEqual(Array.from({ length: 250 }, (_, n) => hello(n)))
    expect(await renderer.render(newId(), [], now)).toEqual([])
  })

  test('an error fails its item alone, with its place', async () => {
    const bad = template('a\n{{ 1 | date: "%Y", "Nowhere/Land" }}')
    const results = await renderer.render(newId(), [item(1), item(2, bad), item(3)], now)
    expect(results).toEqual([
      hello(1),
      { ok: false, reason: 'render_failed', field: 'text', line: 2, column: 1, message: expect.any(String) },
      hello(3),
    ])
  })

  test('what does not end is ended, and its neighbours in the slice are rendered', async () => {
    const before = renderer.stats().killed
    const results = await renderer.render(newId(), [item(1), item(2), item(0, stuck()), item(4), item(5)], now)
    expect(results).toEqual([hello(1), hello(2), LATE, hello(4), hello(5)])
    // Once in the slice, and once more alone: then it is the culprit.
    expect(renderer.stats().killed - before).toBe(2)
  })

  test('a template that does not end for anybody is given up', async () => {
    const before = renderer.stats().killed
    const hopeless = stuck()
    const items = Array.from({ length: 20 }, (_, n) => item(n, hopeless))
    const results = await renderer.render(newId(), [...items, item(1)], now)
    expect(results).toEqual([...items.map(() => LATE), hello(1)])
    expect(renderer.stats().killed - before).toBeLessThanOrEqual(6)
  })

  test('a text that is too long is told so, in our words', async () => {
    const checking = renderer.check(newId(), template(`{{ n }}${'x'.repeat(1_100_000)}`), [])
    await expect(checking).rejects.toThrow('text: is too long: at most 1100000 characters, MJML when it is compiled')
  })

  test('what cannot be handed to a process at all fails alone', async () => {
    let deep: unknown = 1
    for (let level = 0; level < 100_000; level++) deep = [deep]
    const tooDeep = { template: greeting, context: { n: deep } }
    const results = await renderer.render(newId(), [item(1), tooDeep, item(3)], now)
    expect(results).toEqual([hello(1), expect.objectContaining({ ok: false, reason: 'render_failed' }), hello(3)])
  })

  test('what fills the memory ends its own process and nothing else', async () => {
    const text = `{% for i in (1..1900000) %}{% capture s %}{{ s }}${'x'.repeat(200)}{% endcapture %}{% if s contains "y" %}{% endif %}{% endfor %}`
    const [result, after] = await renderer.render(newId(), [item(0, template(text)), item(1)], now)
    expect(result).toMatchObject({ ok: false, reason: 'render_failed' })
    expect(after).toEqual(hello(1))
  })

  test('apps take turns: one with templates that do not end holds nobody up for longer than one of them', async () => {
    const hostile = newId()
    const order: string[] = []
    const flood = Array.from({ length: 3 }, () =>
      renderer.render(hostile, [item(0, stuck())], now).then(() => order.push('hostile')),
    )
    const neighbour = renderer.render(newId(), [item(1)], now).then((results) => {
      order.push('neighbour')
      return results
    })
    expect(await neighbour).toEqual([hello(1)])
    expect(order.indexOf('neighbour')).toBeLessThanOrEqual(1)
    await Promise.all(flood)
    expect(order).toHaveLength(4)
  })

  describe('beside an app whose templates take all the time that they may', () => {
    const LOOPS = ['a', 'b', 'c', 'd', 'e']
    /** Would take hours; the engine ends it at its limit. */
    const endless = () =>
      template(
        `{% assign list = "${'1,'.repeat(100)}" | split: "," %}` +
          LOOPS.map((name) => `{% for ${name} in list %}`).join('') +
          '{% endfor %}'.repeat(LOOPS.length),
      )
    /** What has ended when the direct call of another app has, in that order. */
    async function endedBefore(occupy: (own: Renderer, hostile: string) => Promise<unknown>[]): Promise<string[]> {
      const own = createRenderer({ processes: 2 })
      try {
        const warmUps = [own.render(newId(), [item(0)], now, 'bulk'), own.render(newId(), [item(0)], now, 'bulk')]
        await Promise.all(warmUps)
        const ended: string[] = []
        for (const call of occupy(own, newId()))
          call.then(
            () => ended.push('hostile'),
            () => {},
          )
        expect(await own.render(newId(), [item(1)], now)).toEqual([hello(1)])
        return [...ended, 'neighbour']
      } finally {
        await own.close()
      }
    }

    /** None of these calls can end within two seconds, on any machine. */
    const occupy = (lane: 'direct' | 'bulk') => (own: Renderer, hostile: string) =>
      Array.from({ length: 5 }, () => {
        const items = Array.from({ length: 10 }, () => item(0, endless()))
        return own.render(hostile, items, now, lane)
      })

    test.each(['bulk', 'direct'] as const)('a direct call is served before any of its %s calls', async (lane) => {
      expect(await endedBefore(occupy(lane))).toEqual(['neighbour'])
    })
  })

  test('an app with more waiting than can be rendered is told to wait', async () => {
    const greedy = newId()
    const calls = Array.from({ length: 230 }, (_, n) => renderer.render(greedy, [item(n)], now))
    const outcomes = await Promise.allSettled(calls)
    const refused = outcomes.filter((it) => it.status === 'rejected')
    expect(refused.length).toBeGreaterThan(0)
    for (const { reason } of refused) expect(reason).toMatchObject({ kind: 'limited', retryAfterSeconds: 1 })
  })

  test('sees no environment, and may read no files', async () => {
    const text = '{{ process.env.PATH }}{{ env.PATH }}{{ global }}{{ this }}{{ require }}|'
    expect(await renderer.render(newId(), [item(0, template(text))], now)).toEqual([{ ok: true, texts: { text: '|' } }])
  })
})

test('after close nothing is rendered any more, and what waited is told', async () => {
  const other = createRenderer({ processes: 2 })
  const waiting = [other.render(newId(), [item(0, stuck())], now), other.render(newId(), [item(1)], now)]
  const outcomes = Promise.allSettled(waiting)
  await other.close()
  expect((await outcomes)[1]).toMatchObject({ status: 'rejected', reason: { kind: 'unavailable' } })
  await expect(other.render(newId(), [item(1)], now)).rejects.toMatchObject({ kind: 'unavailable' })
})
