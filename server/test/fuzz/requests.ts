// Requests for a route: a good one, with something wrong in its body, path, query or headers, by any kind of caller.

import { gzipSync } from 'node:zlib'
import fc, { type Arbitrary } from 'fast-check'
import type { Route } from '../../src/http/route.ts'
import { paramNames, requestFor, type Things } from '../authorization/requests.ts'
import type { FirstKeys } from '../process/launch.ts'
import type { FuzzRequest } from './ask.ts'
import { hostileText, hostileValue, objectFor, PROTOTYPE_NAMES, type Schema, valueFor } from './values.ts'

const MAX_BODY_BYTES = 1_048_576
/** With the other headers it has to fit into 16 KB: more is refused before it is known what was asked. */
const MAX_PATH = 10_000

const SDK = { 'sdk-version': 'onesignal/web/160510', accept: 'application/vnd.onesignal.v1+json' }

type Headers = Record<string, string>

/** Of five callers three may do it, so that most requests get to what they are about. */
function callerOf({ access }: Route, { appKey, organizationKey }: FirstKeys): Arbitrary<Headers> {
  const fitting = access.kind === 'organization' || access.kind === 'metrics' ? organizationKey : appKey
  const callers: Headers[] = [
    { authorization: `Key ${appKey}` },
    { authorization: `Key ${organizationKey}` },
    SDK,
    { ...SDK, authorization: 'Bearer constructor' },
    {},
  ]
  return fc.oneof(
    { arbitrary: fc.constant<Headers>({ authorization: `Key ${fitting}` }), weight: 3 },
    { arbitrary: fc.constantFrom(...callers), weight: 2 },
  )
}

const HEADER_NAMES = [
  'content-type',
  'content-encoding',
  'accept',
  'accept-encoding',
  'accept-language',
  'authorization',
  'host',
  'origin',
  'cookie',
  'range',
  'expect',
  'if-none-match',
  'if-modified-since',
  'x-forwarded-for',
  'x-request-id',
  'sdk-version',
  'onesignal-subscription-id',
  'access-control-request-headers',
  ...PROTOTYPE_NAMES.map((name) => name.replaceAll('$', '')),
]
const HEADER_VALUES = [
  ...PROTOTYPE_NAMES,
  '',
  ',',
  ';',
  '*/*;q=constructor',
  'application/json;charset=utf-16',
  'application/json;charset=utf-8;charset=utf-8',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=__proto__',
  'gzip',
  'br',
  'gzip, gzip',
  'bytes=0-18446744073709551616',
  'é\u00ff',
  'x'.repeat(4_000),
]
/** Node neither sends line breaks in a header nor what is no Latin-1; both are for the parser, which is not ours. */
const headerValue = fc.oneof(
  { arbitrary: fc.constantFrom(...HEADER_VALUES), weight: 3 },
  { arbitrary: fc.string({ maxLength: 100 }), weight: 1 },
)
const oddHeaders: Arbitrary<Headers> = fc
  .array(fc.tuple(fc.constantFrom(...HEADER_NAMES), headerValue), { minLength: 1, maxLength: 3 })
  .map((pairs) => Object.fromEntries(pairs))

const PATH_PARTS = ['%', '%zz', '%00', '%ED%A0%80', '%2e%2e%2f', '..', '.', '%F0%9F%98%80', 'a'.repeat(7_000), '%5b%5d']
const pathPart: Arbitrary<string> = fc.oneof(
  fc.constantFrom(...PATH_PARTS),
  hostileText.map((text) => encodeURIComponent(text.toWellFormed().slice(0, 500))),
)

const RAW_BODIES = [
  '',
  ' ',
  'null',
  '[]',
  '1e999',
  '"x"',
  '{',
  '{"a":1,}',
  '{"a":1}{"b":2}',
  '\ufeff{}',
  `${'['.repeat(5_000)}${']'.repeat(5_000)}`,
  `${'{"a":'.repeat(5_000)}1${'}'.repeat(5_000)}`,
  '{"app_id":{"toString":1}}',
  '{"app_id":["__proto__"]}',
  '{"__proto__":{"app_id":"x"}}',
  '{"\\u005f_proto__":1}',
  '{"a":1e-999999999}',
  `{"a":${'9'.repeat(10_000)}}`,
  '{"a":"\\ud800"}',
  'app_id=__proto__&constructor[prototype]=x',
]
const rawBody: Arbitrary<Buffer> = fc.oneof(
  fc.constantFrom(...RAW_BODIES).map((text) => Buffer.from(text)),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
)

/** A copy in which the value at one place is another. */
function replaceOne(value: unknown, place: number, by: unknown): unknown {
  let left = place
  const walk = (node: unknown): unknown => {
    if (left-- === 0) return by
    if (Array.isArray(node)) return node.map(walk)
    if (node === null || typeof node !== 'object') return node
    return Object.fromEntries(Object.entries(node).map(([name, child]) => [name, walk(child)]))
  }
  return walk(value)
}

function bodyOf(route: Route, good: object): Arbitrary<Buffer> {
  const schema = (route.describedBody ?? route.body) as Schema
  const components = (route.components ?? {}) as Record<string, Schema>
  const appId = (good as { app_id?: string }).app_id
  const named = (body: object) => ({ ...good, ...body, ...(appId !== undefined && { app_id: appId }) })
  const written = (body: unknown) => Buffer.from(JSON.stringify(body) ?? '')
  const fields = objectFor(schema, (child) => valueFor(child, components, 1))
  return fc.oneof(
    { arbitrary: fields.map((body) => written(named(body))), weight: 5 },
    {
      arbitrary: fc
        .tuple(fc.nat({ max: 12 }), hostileValue)
        .map(([place, value]) => written(replaceOne(good, place, value))),
      weight: 3,
    },
    { arbitrary: rawBody, weight: 1 },
  )
}

type Wrong = {
  headers: Headers
  oddHeaders: Headers
  body: Buffer | undefined
  params: Record<number, string>
  query: Record<string, unknown>
  prefix: string
  isHead: boolean
}

/** At most every third request is wrong in its path, query or headers: most of those get no further. */
const rarely = <Value>(arbitrary: Arbitrary<Value>, otherwise: Value) =>
  fc.oneof({ arbitrary: fc.constant(otherwise), weight: 4 }, { arbitrary, weight: 1 })

export function requestsFor(route: Route, keys: FirstKeys, things: Things): Arbitrary<FuzzRequest> {
  const good = requestFor(route, keys.appId, things, 'external_id')
  const [path = '', query = ''] = good.path.split('?')
  const names = paramNames(route.path)
  const wrongQuery = fc.dictionary(hostileText, hostileText, { maxKeys: 2 })
  return fc
    .record<Wrong>({
      headers: callerOf(route, keys),
      oddHeaders: rarely(oddHeaders, {}),
      body: good.body ? bodyOf(route, good.body) : fc.constant(undefined),
      params: rarely(fc.dictionary(fc.nat({ max: names.length }).map(String), pathPart, { maxKeys: 2 }), {}),
      query: route.query
        ? rarely(
            fc.oneof(objectFor(route.query as Schema, valueFor), wrongQuery) as Arbitrary<Record<string, unknown>>,
            {},
          )
        : rarely(wrongQuery, {}),
      prefix: rarely(fc.constant('/api/v1'), ''),
      isHead: route.method === 'GET' ? rarely(fc.constant(true), false) : fc.constant(false),
    })
    .map(({ headers, oddHeaders: odd, body, params, query: more, prefix, isHead }) => {
      const parts = path.split('/')
      const places = route.path.split('/').flatMap((part, at) => (part.startsWith(':') ? [at] : []))
      for (const [n, part] of Object.entries(params))
        if (places[Number(n)] !== undefined) parts[places[Number(n)] as number] = part
      const search = new URLSearchParams(query)
      for (const [name, value] of Object.entries(more))
        search.append(name.toWellFormed(), String(textOf(value)).toWellFormed().slice(0, 3_000))
      const all: Headers = { ...headers, ...(body && { 'content-type': typeOf(route) }), ...odd }
      return {
        method: isHead ? 'HEAD' : route.method,
        path: `${prefix}${parts.join('/')}${search.size > 0 ? `?${search}` : ''}`.slice(0, MAX_PATH),
        headers: all,
        body: body && all['content-encoding'] === 'gzip' ? gzipSync(body) : body,
      }
    })
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))

const keyFor = ({ access }: Route, { appKey, organizationKey }: FirstKeys): Headers => ({
  authorization: `Key ${access.kind === 'organization' ? organizationKey : appKey}`,
})
const typeOf = ({ isForm }: Route) => (isForm ? 'application/x-www-form-urlencoded' : 'application/json')

/** A good request whose body is said to be written in one of the names that every object has. */
export function misencodedRequestsFor(route: Route, keys: FirstKeys, things: Things): FuzzRequest[] {
  const { method, path, body } = requestFor(route, keys.appId, things, 'external_id')
  if (!body) return []
  return PROTOTYPE_NAMES.map((name) => ({
    method,
    path,
    headers: { ...keyFor(route, keys), 'content-type': typeOf(route), 'content-encoding': name },
    body: Buffer.from(JSON.stringify(body)),
  }))
}

/** Bodies as large as the route takes: as a list, and with each of the route's own lists filled. Each is made when it is asked for. */
export function largeRequestsFor(route: Route, keys: FirstKeys, things: Things): (() => FuzzRequest)[] {
  const { method, path, body } = requestFor(route, keys.appId, things, 'external_id')
  if (!body || route.isRaw) return []
  const good = body as Record<string, unknown>
  const bytes = (route.maxBodyBytes ?? MAX_BODY_BYTES) - 1_000
  const { properties = {} } = (route.describedBody ?? route.body) as Schema
  const lists = Object.entries(properties).filter(([, { type }]) => [type].flat().includes('array'))
  const inList = ([name, { items }]: [string, Schema]) => {
    const { [name]: own, ...rest } = good
    const start = JSON.stringify({ ...rest, app_id: keys.appId }).slice(0, -1)
    const sample = () => (items ? fc.sample(valueFor(items, {}, 5), { seed: 1, numRuns: 1 })[0] : 1)
    const lawful = () => JSON.stringify(((own ?? []) as unknown[])[0] ?? sample())
    const entries = [lawful, () => '""', () => '[]', () => '{}']
    return entries.map((entry) => () => `${start},${JSON.stringify(name)}:${fill(entry(), bytes)}}`)
  }
  const texts = [
    ...('events' in properties ? [() => `{"events":[${strangers(bytes)}]}`] : []),
    () => fill('[]', bytes),
    () => `{"app_id":"${keys.appId}","data":${fill('[]', bytes)}}`,
    ...lists.flatMap(inList),
  ]
  const headers = { ...keyFor(route, keys), 'content-type': typeOf(route) }
  return texts.map((text) => () => ({ method, path, headers, body: Buffer.from(text()) }))
}

const fill = (item: string, bytes: number) => `[${new Array(Math.floor(bytes / (item.length + 1))).fill(item).join()}]`

/** Events of as many users, of whom nobody knows. */
function strangers(bytes: number): string {
  const each = (n: number) => `{"name":"x","external_id":"nobody-${n}"}`
  return Array.from({ length: Math.floor(bytes / (each(99_999).length + 1)) }, (_, n) => each(n)).join()
}
