// Any interleaving, batching, repetition and concurrency of events gives the counts of a plain model, for any window.

import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { aDomain, load, metricsPath } from '../../../test/email-events.ts'
import { virtualClock } from '../../lib/clock.ts'
import { countEmails } from './count.ts'
import { type EmailCount, emailFacts } from './facts.ts'
import { emailEventNames } from './read-event-line.ts'

const clock = virtualClock('2030-03-15T12:00:00Z')
let app: TestApp
beforeAll(async () => {
  app = await testApp({ clock })
})
afterAll(() => app.close())

type Told = { event: string; at: string; recipient: string; provider: string; message_id?: string }
type Counts = Record<string, Record<string, number>>

/** Moments that lie at edges, just beside them, or anywhere. */
const NOW = clock.now().getTime()
const OLDEST = NOW - 365 * 86_400_000
const EDGES = [
  '2029-04-01T00:00:00Z',
  '2029-10-28T01:00:00Z',
  '2029-12-31T23:00:00Z',
  '2030-01-01T00:00:00Z',
  '2030-02-28T00:00:00Z',
  '2030-03-01T00:00:00Z',
  '2030-03-15T11:00:00Z',
].map((text) => Date.parse(text))
const moment = fc.oneof(
  fc.tuple(fc.constantFrom(...EDGES), fc.integer({ min: -2, max: 2 })).map(([ms, beside]) => ms + beside),
  fc.integer({ min: OLDEST, max: NOW }),
)

const PROVIDERS: Record<string, string> = { 'ann@x.y': 'gmail', 'bob@x.y': 'german', 'cy@x.y': 'gmail' }
const told: fc.Arbitrary<Told> = fc
  .record({
    event: fc.constantFrom(...emailEventNames),
    at: moment.map((ms) => new Date(ms).toISOString()),
    recipient: fc.constantFrom(...Object.keys(PROVIDERS)),
    message_id: fc.option(fc.constantFrom('m1', 'm2'), { nil: undefined }),
  })
  .map(({ message_id, ...it }) => ({
    ...it,
    provider: PROVIDERS[it.recipient] as string,
    ...(message_id !== undefined && { message_id }),
  }))

const windows = fc.array(
  fc.tuple(moment, moment).map(([a, b]) => [Math.max(OLDEST, Math.min(a, b)), Math.max(a, b) + 1] as const),
  { minLength: 1, maxLength: 5 },
)

/** What a careful person with a list of all that was told would answer. */
function model(list: readonly Told[], from: number, until: number): Counts {
  const counts: Counts = {}
  const isIn = ({ at }: Told) => Date.parse(at) >= from && Date.parse(at) < until
  const add = (provider: string, fact: string) => {
    counts[provider] ??= Object.fromEntries(emailFacts.map((name) => [name, 0]))
    const own = counts[provider] as Record<string, number>
    own[fact] = (own[fact] ?? 0) + 1
  }
  const firsts = new Map<string, Told>()
  for (const it of list) {
    const isAgain = it.event === 'opened' || it.event === 'clicked'
    if ((isAgain || it.message_id === undefined) && isIn(it)) add(it.provider, it.event)
    if (!isAgain && it.message_id === undefined) continue
    const key = `${isAgain ? 'unique_' : ''}${it.event} ${it.message_id} ${it.recipient}`
    const first = firsts.get(key)
    if (!first || it.at < first.at) firsts.set(key, it)
  }
  for (const [key, first] of firsts) if (isIn(first)) add(first.provider, key.split(' ')[0] as string)
  return counts
}

async function read(domain: string, from: number, until: number): Promise<Counts> {
  const [start, end] = [new Date(from).toISOString(), new Date(until).toISOString()]
  const { status, body } = await app.app(metricsPath({ domain, start, end }))
  expect(status).toBe(200)
  return Object.fromEntries(
    body.providers.map((it: { provider: string; metrics: object }) => [it.provider, it.metrics]),
  )
}

test('loaded events', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(told, { minLength: 1, maxLength: 60 }),
      // Which of some loads, of which two run at a time, each event is in.
      fc.array(fc.nat(3), { minLength: 60, maxLength: 60 }),
      // What is told again.
      fc.array(fc.nat(59), { maxLength: 10 }),
      windows,
      async (first, places, again, asked) => {
        const domain = aDomain()
        const list = [...first, ...again.flatMap((n) => first[n] ?? [])]
        const batches = [0, 1, 2, 3].map((n) => list.filter((_, i) => places[i % 60] === n))
        for (const pair of [batches.slice(0, 2), batches.slice(2)])
          await Promise.all(
            pair.map((batch) =>
              load(
                app,
                clock,
                batch.map((it) => ({ domain, ...it })),
              ),
            ),
          )
        for (const [from, until] of asked) expect(await read(domain, from, until)).toEqual(model(list, from, until))
      },
    ),
    { numRuns: 40 },
  )
})

test('counts of any size, by any writers', async () => {
  const count = fc.record({
    provider: fc.constantFrom('gmail' as const, 'apple' as const),
    at: moment,
    fact: fc.constantFrom(...emailFacts),
    times: fc.integer({ min: 1, max: 1_000 }),
    part: fc.nat(5),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(count, { minLength: 1, maxLength: 60 }), windows, async (list, asked) => {
      const domain = aDomain()
      await load(app, clock, [{ domain, active: true }])
      const parts = [0, 1, 2, 3, 4, 5].map((part) => list.filter((it) => it.part === part))
      const write = (part: number, own: typeof list) =>
        countEmails(
          app.db,
          app.tenant.id,
          part,
          own.map(
            ({ provider, at, fact, times }): EmailCount => ({ domain, provider, at: new Date(at), [fact]: times }),
          ),
        )
      // Two writers of each part, although each should have one of its own.
      await Promise.all(
        parts.flatMap((own, part) => [
          write(part, own.slice(0, own.length / 2)),
          write(part, own.slice(own.length / 2)),
        ]),
      )
      for (const [from, until] of asked) {
        const expected: Counts = {}
        for (const { provider, at, fact, times } of list) {
          if (at < from || at >= until) continue
          expected[provider] ??= Object.fromEntries(emailFacts.map((name) => [name, 0]))
          const own = expected[provider] as Record<string, number>
          own[fact] = (own[fact] ?? 0) + times
        }
        expect(await read(domain, from, until)).toEqual(expected)
      }
    }),
    { numRuns: 40 },
  )
})
