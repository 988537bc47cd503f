// Bodies and names that are meant to hurt, against a whole server: nobody else may notice them.

import { request } from 'node:http'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type TestApp, testApp } from './app.ts'

const MB = 1_048_576

let app: TestApp
beforeAll(async () => {
  app = await testApp()
})
afterAll(() => app.close())

/** The answer is not looked at: reading it would take this process, which is the server's too, some time of its own. */
const post = (path: string, body: Buffer, localAddress?: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const headers = { authorization: `Key ${app.tenant.key}`, 'content-type': 'application/json' }
    const sent = request(`${app.url}${path}`, { method: 'POST', headers, localAddress }, (response) => {
      response.resume()
      response.on('end', () => resolve(response.statusCode))
    })
    sent.on('error', reject)
    sent.end(body)
  })

/** CPU time of this thread alone: other processes on the machine do not count. */
const cpuMs = () => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

/** The longest that the event loop was kept from its next turn, in CPU time. */
async function longestTurnMs(run: () => Promise<unknown>): Promise<number> {
  let longest = 0
  let before = cpuMs()
  let isOver = false
  const look = () => {
    const now = cpuMs()
    longest = Math.max(longest, now - before)
    before = now
    if (!isOver) setImmediate(look)
  }
  setImmediate(look)
  await run()
  isOver = true
  return longest
}

/** A long turn counts if it is there every time: a collection of garbage left by earlier tests may fall into one of them. */
const TRIES = 3

async function leastLongestTurnMs(limitMs: number, run: () => Promise<unknown>): Promise<number> {
  let leastMs = Number.POSITIVE_INFINITY
  for (let n = 0; n < TRIES && leastMs >= limitMs; n++) leastMs = Math.min(leastMs, await longestTurnMs(run))
  return leastMs
}

describe('the event loop', () => {
  const event = (i: number) => ({ name: 'bought', external_id: `nobody-${i}`, properties: { item: `item ${i}`, n: i } })
  const events = { idempotency_key: crypto.randomUUID(), events: Array.from({ length: 9_500 }, (_, i) => event(i)) }
  const manyKeys = Array.from({ length: 90_000 }, (_, i) => `"k${i}":1`).join(',')

  test.each<[string, () => string, string, number]>([
    ['5 MB of empty lists', () => '/notifications', `{"x":[${'[],'.repeat((5 * MB) / 3 - 10)}1]}`, 400],
    ['5 MB of blanks', () => '/notifications', `{"app_id":"x"${' '.repeat(5 * MB - 14)}}`, 400],
    ['5 MB of texts', () => '/notifications', `{"x":[${`"${'a'.repeat(50)}",`.repeat(98_000)}1]}`, 400],
    ['100,000 numbers', () => `/apps/${app.tenant.id}/users`, `{"x":[${'1,'.repeat(99_000)}1]}`, 400],
    ['9,500 unknown users', () => `/apps/${app.tenant.id}/custom_events`, JSON.stringify(events), 202],
    ['an event of 90,000 keys', () => `/apps/${app.tenant.id}/custom_events`, `{"events":[{${manyKeys}}]}`, 400],
  ])('gets its turns during %s', async (_, path, text, status) => {
    const body = Buffer.from(text)
    const start = cpuMs()
    JSON.parse(`[${'[],'.repeat((5 * MB) / 3 - 10)}1]`)
    const reference = cpuMs() - start
    let answered: number | undefined
    const longest = await leastLongestTurnMs(reference * 0.75, async () => {
      answered = await post(path(), body)
    })
    console.log(`longest turn ${Math.round(longest)} ms; parsing 5 MB of "[]," takes ${Math.round(reference)} ms`)
    expect(answered).toBe(status)
    expect(longest).toBeLessThan(reference * 0.75)
  })

  test('9,500 events are written for PostgreSQL by parts, each of an eighth of them or less', async () => {
    const stringify = JSON.stringify
    const sizes: number[] = []
    const spy = vi.spyOn(JSON, 'stringify').mockImplementation((...args: Parameters<typeof stringify>) => {
      const text = stringify(...args)
      if (text?.startsWith('[{') && text.includes('"event_id"')) sizes.push(text.length)
      return text
    })
    try {
      expect(await post(`/apps/${app.tenant.id}/custom_events`, Buffer.from(stringify(events)))).toBe(202)
    } finally {
      spy.mockRestore()
    }
    const sum = sizes.reduce((total, size) => total + size, 0)
    expect(sum).toBeGreaterThan(stringify(events).length)
    expect(Math.max(...sizes)).toBeLessThan(sum / 8)
  })

  test('gets its turns during 64 such bodies from eight addresses at once', async () => {
    const start = cpuMs()
    JSON.parse(`[${'[],'.repeat((5 * MB) / 3 - 10)}1]`)
    const reference = cpuMs() - start
    const body = Buffer.from(JSON.stringify({ events: events.events }))
    const longest = await leastLongestTurnMs(reference * 0.75, () =>
      Promise.all(
        Array.from({ length: 64 }, (_, i) =>
          post(`/apps/${app.tenant.id}/custom_events`, body, `127.0.0.${1 + (i % 8)}`),
        ),
      ),
    )
    console.log(`longest turn ${Math.round(longest)} ms; parsing 5 MB of "[]," takes ${Math.round(reference)} ms`)
    expect(longest).toBeLessThan(reference * 0.75)
  })
})

describe('names that every object has', () => {
  const NAMES = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf']

  /** One request for each place where a name of the caller's is looked up. */
  const places: [
    string,
    (name: string) => { path: string; body?: unknown; headers?: Record<string, string>; method?: string },
  ][] = [
    ['Content-Encoding', (name) => ({ path: '/users', body: {}, headers: { 'content-encoding': name } })],
    ['Content-Type', (name) => ({ path: '/users', body: {}, headers: { 'content-type': name } })],
    ['a query', (name) => ({ path: `/users/by/external_id/x?${name}=1` })],
    ['an alias label in a path', (name) => ({ path: `/users/by/${name}/x` })],
    ['an alias label', (name) => ({ path: '/users', body: { identity: { [name]: `a ${name}` } } })],
    [
      'a tag',
      (name) => ({ path: '/users', body: { identity: { external_id: name }, properties: { tags: { [name]: '1' } } } }),
    ],
    [
      'a property',
      (name) => ({ path: '/users', body: { properties: { [name]: 'x', language: name, timezone_id: name } } }),
    ],
    ['a subscription type', (name) => ({ path: '/users', body: { subscriptions: [{ type: name, token: 'x' }] } })],
    [
      'an event',
      (name) => ({
        path: '/custom_events',
        body: { events: [{ name, external_id: name, properties: { [name]: 1 } }] },
      }),
    ],
    [
      'a filter',
      (name) => ({
        path: '/segments',
        body: { name, filters: [{ field: name, relation: name, key: name, value: name }] },
      }),
    ],
    [
      'a relation',
      (name) => ({
        path: '/segments',
        body: { name, filters: [{ field: 'tag', relation: name, key: name, value: '1' }] },
      }),
    ],
    [
      'a tag in a filter',
      (name) => ({
        path: '/segments',
        body: { name, filters: [{ field: 'tag', relation: '=', key: name, value: '1' }] },
      }),
    ],
    ['an outcome', (name) => ({ path: `/outcomes?outcome_names=${name}.count&outcome_time_range=${name}` })],
    ['an outcome of the default range', (name) => ({ path: `/outcomes?outcome_names=${name}.count` })],
  ]

  test.each(places)('%s', async (_, ask) => {
    for (const name of NAMES) {
      const { path, ...request } = ask(name)
      // Parsing is an assertion of its own: every answer is JSON.
      const { status } = await app.app(path, request)
      expect([name, status, status < 500]).toEqual([name, status, true])
    }
  })

  test('a message in such languages, for such aliases', async () => {
    for (const name of NAMES) {
      const { status } = await app.request('/notifications', {
        body: {
          app_id: app.tenant.id,
          target_channel: 'push',
          include_aliases: { [name]: ['x'] },
          contents: { en: 'x', [name]: 'y' },
          headings: { en: 'x', [name]: 'y' },
          data: { [name]: 1 },
          send_after: name,
          delayed_option: name,
        },
      })
      expect([name, status, status < 500]).toEqual([name, status, true])
    }
  })

  test('a template in such languages', async () => {
    for (const name of NAMES) {
      const { status } = await app.request('/templates', {
        body: { app_id: app.tenant.id, name, contents: { en: `{{ user.${name} }}`, [name]: 'y' }, [name]: name },
      })
      expect([name, status, status < 500]).toEqual([name, status, true])
    }
  })
})
