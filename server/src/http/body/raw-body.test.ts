import { gzipSync } from 'node:zlib'
import Type from 'typebox'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FakeServer, fakeServer, listen } from '../../../test/http.ts'
import { describeApi } from '../openapi.ts'
import { type Call, route } from '../route.ts'

const seen: Pick<Call, 'body' | 'isHead'>[] = []
const BYTES = Buffer.from([0, 0xff, 0x80, 0x0d, 0x0a])
const shared = { tag: 'Raw', access: { kind: 'public' as const }, errors: 'apps' as const, limits: [] }
const note = ({ body, isHead }: Pick<Call, 'body' | 'isHead'>) => {
  seen.push({ body, isHead })
  return { status: 200, body: BYTES, headers: { 'content-type': 'application/octet-stream' } }
}
const routes = [
  route({
    ...shared,
    operation: 'takeBytes',
    method: 'POST',
    path: '/bytes',
    summary: 'Take bytes',
    body: Type.Unsafe<Buffer | undefined>({}),
    isRaw: true,
    maxBodyBytes: 100,
    answers: { 200: Type.String() },
    handle: note,
  }),
  route({
    ...shared,
    operation: 'giveBytes',
    method: 'GET',
    path: '/bytes',
    summary: 'Give bytes',
    answers: { 200: Type.String() },
    handle: note,
  }),
]

let server: FakeServer
let url: string
beforeAll(async () => {
  server = fakeServer({ routes })
  url = `http://127.0.0.1:${await listen(server.app)}/bytes`
})
afterAll(() => server.close())

test('a raw body is handed on as the bytes it came as, whatever its type', async () => {
  for (const type of ['text/plain; charset=UTF-8', 'application/json', 'multipart/form-data; boundary=x', '']) {
    const answer = await fetch(url, { method: 'POST', body: BYTES, headers: type ? { 'content-type': type } : {} })
    expect(Buffer.from(await answer.arrayBuffer())).toEqual(BYTES)
    expect(seen.at(-1)?.body).toEqual(BYTES)
  }
  await fetch(url, { method: 'POST', body: gzipSync(BYTES), headers: { 'content-encoding': 'gzip' } })
  expect(seen.at(-1)?.body).toEqual(BYTES)
  await fetch(url, { method: 'POST' })
  expect(seen.at(-1)?.body).toBeUndefined()
})

test('a raw body has its limit too', async () => {
  const before = seen.length
  const { status } = await fetch(url, { method: 'POST', body: Buffer.alloc(101) })
  expect([status, seen.length]).toEqual([413, before])
})

test('HEAD is told from GET', async () => {
  const answer = await fetch(url, { method: 'HEAD' })
  expect([answer.status, answer.headers.get('content-length'), seen.at(-1)?.isHead]).toEqual([200, '5', true])
  await fetch(url)
  expect(seen.at(-1)?.isHead).toBe(false)
})

test('a raw body is described as of any type', () => {
  const { paths } = describeApi(routes)
  expect(Object.keys(paths['/bytes']?.post?.requestBody?.content ?? {})).toEqual(['*/*'])
})
