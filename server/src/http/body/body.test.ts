import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type FakeServer, fakeServer, listen, OWN_APP, talk } from '../../../test/http.ts'

const MB = 1_048_576
/** What every object has without having been given it. */
const INHERITED = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf']
const URL = `/apps/${OWN_APP}/users`

let server: FakeServer
let port: number
beforeAll(async () => {
  server = fakeServer()
  port = await listen(server.app)
})
afterAll(() => server.close())

type Sent = { status: number; type: string | null; body: { errors?: unknown; body?: unknown } }

async function post(payload: string | Buffer, headers: Record<string, string> = {}): Promise<Sent> {
  const response = await fetch(`http://127.0.0.1:${port}${URL}`, {
    method: 'POST',
    headers: { authorization: 'Key own', 'content-type': 'application/json', ...headers },
    body: typeof payload === 'string' ? payload : new Uint8Array(payload),
  })
  // Parsing is an assertion of its own: every answer is JSON.
  return { status: response.status, type: response.headers.get('content-type'), body: (await response.json()) as never }
}

const nested = (depth: number, open: string, close: string, core = '1') =>
  open.repeat(depth) + core + close.repeat(depth)
const ofKeys = (count: number) => `{${Array.from({ length: count }, (_, i) => `"k${i}":${i}`).join(',')}}`
const ofBytes = (bytes: number) => `{"x":"${'a'.repeat(bytes - 8)}"}`

type Case = [name: string, payload: string | Buffer, status: number]

const cases: Case[] = [
  ['an empty object', '{}', 200],
  ['blanks around', ' \n\t{} \r\n', 200],
  ['1 MB less a byte', ofBytes(MB - 1), 200],
  ['1 MB', ofBytes(MB), 200],
  ['1 MB and a byte', ofBytes(MB + 1), 413],
  ['12 MB', ofBytes(12 * MB), 413],
  ['depth 32 of lists', `{"x":${nested(31, '[', ']')}}`, 200],
  ['depth 33 of lists', `{"x":${nested(32, '[', ']')}}`, 400],
  ['depth 32 of objects', nested(32, '{"a":', '}'), 200],
  ['depth 33 of objects', nested(33, '{"a":', '}'), 400],
  ['depth 10,000', nested(10_000, '[', ']'), 400],
  ['depth 100,000', nested(100_000, '[', ']'), 400],
  ['depth 100,000 never closed', '['.repeat(100_000), 400],
  ['brackets in text are no depth', JSON.stringify({ x: '[{'.repeat(1_000) }), 200],
  ['escaped quotes before brackets', JSON.stringify({ x: '\\"[{\\\\'.repeat(1_000) }), 200],
  ['2,000 keys', ofKeys(2_000), 200],
  ['2,001 keys', ofKeys(2_001), 400],
  ['2,001 keys, all alike', `{${Array(2_001).fill('"a":1').join(',')}}`, 400],
  ['100,000 keys', `{${Array(100_000).fill('"":1').join(',')}}`, 400],
  ['keys in text are no keys', JSON.stringify({ x: '"a":'.repeat(5_000) }), 200],
  ['twice the same key', '{"a":1,"a":2}', 200],
  ['100,000 values', `{"x":[${Array(99_998).fill('1').join(',')}]}`, 200],
  ['100,001 values', `{"x":[${Array(99_999).fill('1').join(',')}]}`, 400],
  ['100,001 values of all kinds', `[${Array(20_000).fill('[],{},"",true,null').join(',')}]`, 400],
  ['a list of 300,000 numbers', `{"x":[${Array(300_000).fill('1').join(',')}]}`, 400],
  ['a list of 300,000 wrong items', `{"subscriptions":[${Array(300_000).fill('1').join(',')}]}`, 400],
  ['__proto__', '{"__proto__":{"admin":true}}', 400],
  ['__proto__ one level down', '{"identity":{"__proto__":"x"}}', 400],
  ['__proto__ in a list', '{"x":[[{"__proto__":1}]]}', 400],
  ['__proto__ in escapes', '{"\\u005f_proto__":{"admin":true}}', 400],
  ['__proto__ as a value', '{"identity":{"a":"__proto__"}}', 200],
  ['constructor', '{"constructor":{"prototype":{"admin":true}}}', 200],
  ['prototype', '{"identity":{"prototype":"x","toString":"y","hasOwnProperty":"z"}}', 200],
  ['1e999', '{"x":1e999}', 400],
  ['-1e999', '{"x":-1e999}', 400],
  ['1E+400', '{"x":[1,2,1E+400]}', 400],
  ['a number of 400 digits', `{"x":${'9'.repeat(400)}}`, 400],
  ['a number of 1,000,000 digits', `{"x":${'9'.repeat(1_000_000)}}`, 400],
  ['1e308', '{"x":1e308}', 200],
  ['1e-999, which is 0', '{"x":1e-999}', 200],
  ['2^53+1', '{"x":9007199254740993}', 200],
  ['int64', '{"x":9223372036854775807}', 200],
  ['text that looks like a huge number', '{"x":"1e999"}', 200],
  ['a fraction where an integer belongs', '{"properties":{"session_time":1.5}}', 400],
  ['a number as text', '{"properties":{"session_time":"1"}}', 400],
  ['below the minimum', '{"properties":{"session_time":-1}}', 400],
  ['NaN', '{"x":NaN}', 400],
  ['Infinity', '{"x":Infinity}', 400],
  ['hexadecimal', '{"x":0x10}', 400],
  ['a leading zero', '{"x":01}', 400],
  ['a byte order mark', Buffer.from('\ufeff{}'), 200],
  ['two byte order marks', Buffer.from('\ufeff\ufeff{}'), 400],
  ['UTF-16, little end first', Buffer.from('\ufeff{}', 'utf16le'), 400],
  ['UTF-16 without a mark', Buffer.from('{"a":1}', 'utf16le'), 400],
  ['a broken sequence', Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xc3, 0x28, 0x22, 0x7d]), 400],
  ['an overlong slash', Buffer.from([0x7b, 0x22, 0xc0, 0xaf, 0x22, 0x3a, 0x31, 0x7d]), 400],
  ['half a pair in UTF-8', Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x7d]), 400],
  ['a sequence cut off', Buffer.from([0x7b, 0x7d, 0xe2, 0x82]), 400],
  ['Latin-1', Buffer.from('{"a":"\xe9"}', 'latin1'), 400],
  ['U+0000 raw', '{"a":"\0"}', 400],
  ['U+0000 escaped', '{"a":"\\u0000"}', 400],
  ['U+0000 in a key', '{"identity":{"a\\u0000":"x"}}', 400],
  ['a high half alone', '{"a":"\\ud83d"}', 400],
  ['a low half alone', '{"a":["x","\\ude00"]}', 400],
  ['halves in the wrong order', '{"a":"\\ude00\\ud83d"}', 400],
  ['a half in a key', '{"\\ud83d":1}', 400],
  ['a pair in escapes', '{"a":"\\ud83d\\ude00"}', 200],
  ['a backslash before u', '{"a":"\\\\u0000"}', 200],
  ['U+FFFF', '{"a":"\uffff"}', 200],
  ['128 emoji', JSON.stringify({ identity: { a: '😀'.repeat(128) } }), 200],
  ['129 emoji', JSON.stringify({ identity: { a: '😀'.repeat(129) } }), 400],
  ['nothing but blanks', '   ', 400],
  ['no bytes', '', 400],
  ['null', 'null', 400],
  ['true', 'true', 400],
  ['a number', '5', 400],
  ['text', '"x"', 400],
  ['a list', '[]', 400],
  ['half an object', '{"a":', 400],
  ['text never closed', `{"a":"${'x'.repeat(100_000)}`, 400],
  ['backslashes without end', `{"a":"${'\\'.repeat(100_001)}`, 400],
  ['a comma too many', '{"a":1,}', 400],
  ['a comment', '{/* */}', 400],
  ['single quotes', "{'a':1}", 400],
  ['two values', '{}{}', 400],
  ['a raw line break in text', '{"a":"\n"}', 400],
  ['form data', 'a=1&b=2', 400],
  ['XML', '<a/>', 400],
]

describe('bodies', () => {
  test.each(cases)('%s', async (_, payload, status) => {
    const sent = await post(payload)
    expect(sent).toMatchObject({ status, type: 'application/json; charset=utf-8' })
    if (status >= 400) expect(sent.body.errors).toEqual([expect.objectContaining({ code: expect.any(String) })])
  })

  test('200 mutations of a good body never become a fault of ours', async () => {
    const good = JSON.stringify({
      identity: { external_id: 'ada\u00e9😀', other: 'x' },
      subscriptions: [
        { type: 'Email', token: 'ada@example.com' },
        { type: 'SMS', token: null },
      ],
      properties: { kind: 'a', session_time: 12e2 },
    })
    const noise = [
      '{',
      '}',
      '[',
      ']',
      '"',
      ':',
      ',',
      '\\u0000',
      '\\',
      '1e999',
      'null',
      '\0',
      '\ud800',
      '__proto__',
      ' ',
    ]
    let seed = 7
    const random = (below: number) => {
      seed = (seed * 48_271) % 2_147_483_647
      return seed % below
    }
    for (let i = 0; i < 200; i++) {
      const at = random(good.length)
      const text = good.slice(0, at) + noise[random(noise.length)] + good.slice(at + random(3))
      const { status } = await post(text)
      expect([text, status < 500]).toEqual([text, true])
    }
  })

  test('prototypes stay as they are', async () => {
    await post('{"constructor":{"prototype":{"admin":true}},"identity":{"toString":"x"}}')
    expect(({} as { admin?: unknown }).admin).toBeUndefined()
    const { body } = await post('{"constructor":1}')
    expect(Object.hasOwn(body.body as object, 'constructor')).toBe(true)
  })

  test('bytes in are bytes out', async () => {
    const identity = { nfc: '\u00e9', nfd: 'e\u0301', family: '👩‍👩‍👧', rtl: '\u202eabc', quote: '"\\/\b' }
    const { body } = await post(JSON.stringify({ identity }))
    expect(body.body).toEqual({ identity })
  })
})

describe('compressed bodies', () => {
  const good = JSON.stringify({ identity: { external_id: 'ada' } })
  test.each([
    ['gzip', gzipSync(good)],
    ['GZip', gzipSync(good)],
    ['x-gzip', gzipSync(good)],
    ['deflate', deflateSync(good)],
    ['br', brotliCompressSync(good)],
    ['identity', Buffer.from(good)],
  ])('%s is read', async (encoding, bytes) => {
    expect(await post(bytes, { 'content-encoding': encoding })).toMatchObject({
      status: 200,
      body: { body: { identity: { external_id: 'ada' } } },
    })
  })

  test.each(['compress', 'zstd', 'gzip, gzip', 'gzip;q=1', 'nonsense', ...INHERITED])(
    '%j is not taken',
    async (encoding) => {
      expect((await post(gzipSync(good), { 'content-encoding': encoding })).status).toBe(415)
    },
  )

  test('what does not decompress is invalid', async () => {
    expect((await post('not gzip', { 'content-encoding': 'gzip' })).status).toBe(400)
    expect((await post(gzipSync(good).subarray(0, 20), { 'content-encoding': 'gzip' })).status).toBe(400)
  })

  test('a bomb is too large, and costs no memory', async () => {
    const bombs = [gzipSync(Buffer.alloc(200 * MB)), brotliCompressSync(Buffer.alloc(64 * MB))]
    const before = process.memoryUsage().rss
    expect((await post(bombs[0] as Buffer, { 'content-encoding': 'gzip' })).status).toBe(413)
    expect((await post(bombs[1] as Buffer, { 'content-encoding': 'br' })).status).toBe(413)
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * MB)
    expect((await post(gzipSync(ofBytes(MB)), { 'content-encoding': 'gzip' })).status).toBe(200)
    expect((await post(gzipSync(ofBytes(MB + 1)), { 'content-encoding': 'gzip' })).status).toBe(413)
  })
})

describe('the Content-Type', () => {
  const send = async (contentType: string | undefined, payload = '{"identity":5}') => {
    const response = await server.app.inject({
      method: 'POST',
      url: URL,
      headers: { authorization: 'Key own', ...(contentType !== undefined && { 'content-type': contentType }) },
      payload: Buffer.from(payload),
    })
    return response.statusCode
  }

  // 400 and not 415: the body was taken for JSON and validated.
  test.each([
    'application/json',
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'APPLICATION/JSON',
    'application/json;',
    ' application/json ; charset="utf-8" ',
  ])('%j is JSON, and validated', async (contentType) => {
    expect(await send(contentType)).toBe(400)
    expect(await send(contentType, '{}')).toBe(200)
  })

  test.each([
    undefined,
    '',
    'text/plain',
    'application/jsonx',
    'application/json x',
    'application/json\ttext/plain',
    'application/json, text/plain',
    'text/plain; application/json',
    'application/json; charset=utf-16',
    'application/json; charset=latin1',
    'application/json; x=y',
    'application/vnd.api+json',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/\u00a0json',
  ])('%j is not taken', async (contentType) => {
    expect(await send(contentType)).toBe(415)
  })

  test('is for bodies only', async () => {
    const remove = async (headers: Record<string, string>, payload?: string) => {
      const response = await server.app.inject({
        method: 'DELETE',
        url: `/apps/${OWN_APP}/segments/x`,
        headers: { authorization: 'Key own', ...headers },
        ...(payload !== undefined && { payload }),
      })
      return response.statusCode
    }
    expect(await remove({})).toBe(200)
    expect(await remove({ 'content-type': 'application/json' })).toBe(200)
    expect(await remove({ 'content-type': 'text/plain' })).toBe(200)
    expect(await remove({ 'content-type': '' })).toBe(200)
    expect(await remove({ 'content-type': 'application/json' }, '{"ignored":true}')).toBe(200)
    expect(await remove({ 'content-type': 'text/plain' }, 'ignored')).toBe(200)
    const get = await server.app.inject({
      url: `/apps/${OWN_APP}/users/by/external_id/x`,
      headers: { authorization: 'Key own', 'content-type': 'application/json' },
    })
    expect(get.statusCode).toBe(200)
  })
})

describe('on the wire', () => {
  const head = `POST ${URL} HTTP/1.1\r\nHost: x\r\nAuthorization: Key own\r\nContent-Type: application/json\r\n`
  const statuses = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map((match) => Number(match[1]))
  const isJson = (text: string) =>
    text
      .split('HTTP/1.1 ')
      .slice(1)
      .every((part) => /content-type: application\/json/i.test(part))

  test.each([
    ['a length that is no number', `${head}Content-Length: x\r\n\r\n{}`],
    ['a negative length', `${head}Content-Length: -1\r\n\r\n{}`],
    ['two lengths', `${head}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`],
    ['a length and chunks', `${head}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ['chunks that are no chunks', `${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n`],
    ['a huge chunk size', `${head}Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}\r\n`],
    ['an unknown transfer encoding', `${head}Transfer-Encoding: gzip\r\n\r\n{}`],
    ['a header without a name', `${head}: x\r\n\r\n`],
    ['a folded header', `${head}X: a\r\n b\r\n\r\n`],
    ['U+0000 in a header', `${head}X: a\0b\r\n\r\n`],
    ['no HTTP at all', 'hello\r\n\r\n'],
    ['another protocol', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
  ])('%s is refused in JSON', async (_, bytes) => {
    const text = await talk(port, Buffer.from(bytes, 'latin1'), (soFar) => soFar.endsWith('}'))
    expect(statuses(text)).toEqual([expect.toSatisfy((status: number) => status >= 400 && status < 500)])
    expect(isJson(text)).toBe(true)
    expect(JSON.parse(text.split('\r\n\r\n')[1] ?? '')).toMatchObject({ errors: [expect.anything()] })
  })

  test('a request without a host is answered like any other', async () => {
    const text = await talk(port, 'GET /nope HTTP/1.1\r\n\r\n', (soFar) => soFar.endsWith('}'))
    expect(statuses(text)).toEqual([404])
    expect(isJson(text)).toBe(true)
  })

  test('headers above 16 kB are 431', async () => {
    const text = await talk(port, `${head}X: ${'x'.repeat(20_000)}\r\n\r\n`, (soFar) => soFar.endsWith('}'))
    expect(statuses(text)).toEqual([431])
    expect(isJson(text)).toBe(true)
  })

  test('a body in many small chunks is one body', async () => {
    const body = JSON.stringify({ identity: { external_id: 'é😀' } })
    const bytes = Buffer.from(body)
    const chunks = Array.from(bytes, (byte) =>
      Buffer.concat([Buffer.from('1\r\n'), Buffer.from([byte]), Buffer.from('\r\n')]),
    )
    const text = await talk(
      port,
      Buffer.concat([Buffer.from(`${head}Transfer-Encoding: chunked\r\n\r\n`), ...chunks, Buffer.from('0\r\n\r\n')]),
      (soFar) => soFar.includes('"now"'),
    )
    expect(statuses(text)).toEqual([200])
  })

  test('chunks without end are cut at the limit', async () => {
    const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`
    const text = await talk(port, `${head}Transfer-Encoding: chunked\r\n\r\n${chunk.repeat(20)}`, (soFar) =>
      soFar.endsWith('}'),
    )
    expect(statuses(text)).toEqual([413])
  })

  test('200 pipelined requests have 200 answers, in order', async () => {
    const request = (i: number) => {
      const body = JSON.stringify({ identity: { n: String(i) } })
      return `${head}Content-Length: ${body.length}\r\n\r\n${body}`
    }
    const text = await talk(port, Array.from({ length: 200 }, (_, i) => request(i)).join(''), (soFar) =>
      soFar.includes('"n":"199"'),
    )
    expect(statuses(text)).toHaveLength(200)
    expect([...text.matchAll(/"n":"(\d+)"/g)].map((match) => Number(match[1]))).toEqual(
      Array.from({ length: 200 }, (_, i) => i),
    )
  })

  test('after a body that is too large the connection still answers', async () => {
    const large = ofBytes(2 * MB)
    const text = await talk(
      port,
      `${head}Content-Length: ${large.length}\r\n\r\n${large}${head}Content-Length: 2\r\n\r\n{}`,
      (soFar) => soFar.includes('"now"'),
    )
    expect(statuses(text)).toEqual([413, 200])
  })

  test('an unknown expectation is refused in JSON, 100-continue works', async () => {
    const refused = await talk(port, `${head}Expect: magic\r\nContent-Length: 2\r\n\r\n`, (soFar) =>
      soFar.endsWith('}'),
    )
    expect(statuses(refused)).toEqual([417])
    expect(isJson(refused)).toBe(true)
    const text = await talk(port, `${head}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{}`, (soFar) =>
      soFar.includes('"now"'),
    )
    expect(statuses(text)).toEqual([100, 200])
  })

  test.each([
    ['headers', 'POST /players HTTP/1.1\r\nHost: x\r\nX: '],
    ['bodies', `${head}Content-Length: 100\r\n\r\n{`],
  ])('%s that never end are cut', async (_, bytes) => {
    const impatient = fakeServer({ requestTimeoutMs: 300 })
    try {
      const text = await talk(await listen(impatient.app), bytes)
      expect(statuses(text)).toEqual([408])
      expect(isJson(text)).toBe(true)
    } finally {
      await impatient.close()
    }
  })
})
