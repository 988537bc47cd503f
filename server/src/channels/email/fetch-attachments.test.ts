import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Answer, type HttpSink, startHttpSink } from '../../../test/sinks/http.ts'
import { virtualClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { createLog } from '../../lib/log.ts'
import { type Outbound, openOutbound } from '../outbound.ts'
import {
  type AttachmentFetcherSettings,
  createAttachmentFetcher,
  type FetchedAttachments,
} from './fetch-attachments.ts'

const clock = virtualClock()
let outbound: Outbound
let server: HttpSink
let answer: (path: string) => Answer | Promise<Answer>
beforeAll(async () => {
  outbound = openOutbound({ allow: ['127.0.0.1'], allowHttp: 'inside' })
  server = await startHttpSink(({ path }) => answer(path))
})
afterAll(async () => {
  await server.stop()
  await outbound.close()
})
beforeEach(() => {
  server.received.length = 0
  answer = (path) => ({ status: 200, headers: { 'content-type': 'text/csv; charset=utf-8' }, body: `in ${path}` })
})

const aFetcher = (more: Partial<AttachmentFetcherSettings> = {}) =>
  createAttachmentFetcher({ outbound, clock, log: createLog('silent'), maxBytes: 1_000, ...more })
const asked = (...paths: string[]) => paths.map((path) => ({ url: `${server.url}${path}`, name: path.slice(1) }))
const APP = newId()
const askedFor = () => server.received.map(({ path }) => path)
const textsOf = (files: FetchedAttachments) =>
  'kind' in files ? files : files.map(({ encoded }) => Buffer.from(encoded.toString(), 'base64').toString())

describe('files of a message', () => {
  test('are fetched in their order, with the type that was said or that their server says', async () => {
    const files = await aFetcher().fetch(APP, newId(), [
      { url: `${server.url}/a?b=c`, name: 'a.csv' },
      { url: `${server.url}/b`, name: 'b.pdf', contentType: 'application/pdf' },
    ])
    expect(textsOf(files)).toEqual(['in /a?b=c', 'in /b'])
    expect(files).toMatchObject([
      { name: 'a.csv', contentType: 'text/csv' },
      { name: 'b.pdf', contentType: 'application/pdf' },
    ])
    expect(server.received).toMatchObject([
      { method: 'GET', path: '/a?b=c', headers: { 'accept-encoding': 'identity' }, body: '' },
      { method: 'GET', path: '/b' },
    ])
    expect(server.received[0]?.headers).not.toHaveProperty('content-length')
  })

  test('are fetched once, however many ask; of another message again', async () => {
    const fetcher = aFetcher()
    const id = newId()
    const all = await Promise.all(Array.from({ length: 20 }, () => fetcher.fetch(APP, id, asked('/a'))))
    expect(new Set(all).size).toBe(1)
    await fetcher.fetch(APP, id, asked('/a'))
    expect(askedFor()).toEqual(['/a'])
    await fetcher.fetch(APP, newId(), asked('/a'))
    expect(askedFor()).toEqual(['/a', '/a'])
    clock.advance({ hours: 1 })
    expect(textsOf(await fetcher.fetch(APP, id, asked('/a')))).toEqual(['in /a'])
    expect(askedFor()).toHaveLength(3)
  })

  test('are kept as long as there is room for them', async () => {
    answer = () => ({ status: 200, body: 'x'.repeat(57 * 100) })
    const fetcher = aFetcher({ maxBytes: 10_000, keptBytes: 60_000 })
    const [one, two, three] = [newId(), newId(), newId()]
    await fetcher.fetch(APP, one, asked('/1'))
    await fetcher.fetch(APP, two, asked('/2'))
    await fetcher.fetch(APP, one, asked('/1'))
    await fetcher.fetch(APP, three, asked('/3'))
    expect(askedFor()).toEqual(['/1', '/2', '/3'])
    // The second was not asked for longest.
    await fetcher.fetch(APP, one, asked('/1'))
    await fetcher.fetch(APP, two, asked('/2'))
    expect(askedFor()).toEqual(['/1', '/2', '/3', '/2'])
  })

  test('may have so many bytes together', async () => {
    answer = (path) => ({ status: 200, body: 'x'.repeat(Number(path.slice(1))) })
    const fetched = async (...sizes: number[]) => aFetcher().fetch(APP, newId(), asked(...sizes.map((it) => `/${it}`)))
    expect(await fetched(400, 600, 0)).toHaveLength(3)
    const large = { kind: 'failed', reason: 'too large' }
    expect(await fetched(1_001)).toEqual(large)
    expect(await fetched(400, 601)).toEqual(large)
    expect(await fetched(1_000, 1)).toEqual(large)
    expect(await fetched(50_000_000)).toEqual(large)
  })

  test('are not fetched where the operator allows none', async () => {
    const files = await aFetcher({ maxBytes: 0 }).fetch(APP, newId(), asked('/a'))
    expect(files).toEqual({ kind: 'failed', reason: 'not allowed by this server' })
    expect(askedFor()).toEqual([])
  })
})

describe('what cannot be had', () => {
  const answerOf = (status: number, headers = {}): Answer => ({ status, headers, body: 'x' })

  test.each([
    [answerOf(404), 'failed', 'status 404'],
    [answerOf(403), 'failed', 'status 403'],
    [answerOf(302, { location: '/elsewhere' }), 'failed', 'status 302'],
    [answerOf(204), 'failed', 'status 204'],
    [answerOf(200, { 'content-encoding': 'gzip' }), 'failed', 'compressed by its server'],
    [answerOf(500), 'retry', 'status 500'],
    [answerOf(503), 'retry', 'status 503'],
    [answerOf(429), 'retry', 'status 429'],
    ['reset', 'retry', 'connection lost'],
    ['half', 'retry', 'connection lost'],
  ] as const)('%j is told as %s: %s', async (told, kind, reason) => {
    answer = (path) => (path === '/bad' ? told : { status: 200, body: 'good' })
    expect(await aFetcher().fetch(APP, newId(), asked('/good', '/bad', '/other'))).toEqual({ kind, reason })
    expect(askedFor()).toEqual(['/good', '/bad'])
  })

  test.each([
    ['https://127.0.0.2/', 'address not allowed'],
    ['http://93.184.215.14/', 'scheme not allowed'],
    ['https://93.184.215.14:22/', 'port not allowed'],
    ['https://user:password@93.184.215.14/', 'credentials in the address'],
  ])('%s is not asked: %s', async (url, reason) => {
    expect(await aFetcher().fetch(APP, newId(), [{ url, name: 'a' }])).toEqual({ kind: 'failed', reason })
  })

  test('for now is asked for again after a minute; for good, not', async () => {
    const fetcher = aFetcher()
    const [good, bad] = [newId(), newId()]
    answer = (path) => answerOf(path === '/good' ? 503 : 404)
    const fetchBoth = () =>
      Promise.all([fetcher.fetch(APP, good, asked('/good')), fetcher.fetch(APP, bad, asked('/bad'))])
    for (let i = 0; i < 3; i++) expect(await fetchBoth()).toMatchObject([{ kind: 'retry' }, { kind: 'failed' }])
    expect(askedFor().sort()).toEqual(['/bad', '/good'])
    answer = () => answerOf(200)
    clock.advance({ minutes: 1 })
    expect(await fetchBoth()).toMatchObject([[{ name: 'good' }], { kind: 'failed' }])
    expect(askedFor().sort()).toEqual(['/bad', '/good', '/good'])
  })

  test('in a moment is to be asked for later, is still fetched once, and keeps no place from others', async () => {
    let go = () => {}
    const gone = new Promise<void>((resolve) => {
      go = resolve
    })
    answer = async (path) => {
      if (path === '/slow') await gone
      return { status: 200, body: path }
    }
    const fetcher = aFetcher({ patienceMs: 50 })
    const slow = Array.from({ length: 12 }, newId)
    const later = { kind: 'retry', reason: 'under way', afterMs: 15_000, wasNotAttempted: true }
    expect(await Promise.all(slow.map((id) => fetcher.fetch(APP, id, asked('/slow'))))).toEqual(slow.map(() => later))
    expect(await fetcher.fetch(APP, slow[0] as string, asked('/slow'))).toEqual(later)
    // At most four downloads per app run at once.
    await expect.poll(askedFor).toHaveLength(4)
    const patient = aFetcher()
    const [otherApp, otherMessage] = [newId(), newId()]
    await expect
      .poll(async () => textsOf(await fetcher.fetch(otherApp, otherMessage, asked('/quick'))))
      .toEqual(['/quick'])
    expect(textsOf(await patient.fetch(APP, newId(), asked('/quick')))).toEqual(['/quick'])
    go()
    for (const id of slow) {
      let files = await fetcher.fetch(APP, id, asked('/slow'))
      while ('kind' in files) files = await fetcher.fetch(APP, id, asked('/slow'))
      expect(textsOf(files)).toEqual(['/slow'])
    }
    expect(askedFor().filter((path) => path === '/slow')).toHaveLength(12)
  })
})
