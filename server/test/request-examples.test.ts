// The examples of /docs, taken at their word: curl's are read by a real shell, Node's are run, and what they would send is held
// against the description that they were made from.

import { execFileSync } from 'node:child_process'
import Ajv from 'ajv'
import addFormats from 'ajv-formats'
import { describe, expect, test } from 'vitest'
import { declaredRoutes } from '../src/composition/declared-routes.ts'
import { exampleNames } from '../src/composition/examples.ts'
import { describeApi } from '../src/http/openapi.ts'
import { exampleRequest } from '../src/http/pages/example-request.ts'
import { operationsOf } from '../src/http/pages/reference.ts'

const ORIGIN = 'http://localhost:3000'
const ID = '7d0e6c5e-1f0b-4c52-9a53-2b1c2c9b4e0f'
const { domains, kit } = declaredRoutes()
const api = describeApi([...domains, ...kit])
const examples = operationsOf(api).map((one) => {
  const example = exampleRequest(api, one.path, one.method, ORIGIN)
  if (!example) throw new Error(`${one.operation.operationId} has no example`)
  return { ...one, id: one.operation.operationId, ...example }
})

const ajv = new Ajv.default({ strict: false, allErrors: true })
addFormats.default(ajv)
ajv.addSchema({ $id: 'api', components: api.components })
const pointed = (schema: unknown) =>
  JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#/', '"$ref":"api#/')) as Record<string, unknown>

type Sent = { method: string; url: string; headers: Record<string, string>; body: string | undefined }

const names = new Set(examples.flatMap(({ curl }) => [...curl.matchAll(/\$(\w+)/g)].map((match) => match[1] as string)))
const variables = Object.fromEntries([...names].map((name) => [name, name.endsWith('_KEY') ? 'secret' : ID]))

/** All in one shell, in which curl prints what it is given. */
function readByShell(): Map<string, Sent> {
  const script = [
    `curl() { for word in "$@"; do printf '%s\\0' "$word"; done; printf '\\1'; }`,
    ...examples.map(({ curl }) => curl),
  ].join('\n')
  const printed = execFileSync('/bin/sh', ['-c', script], { env: variables, encoding: 'utf8' })
  const calls = printed.split('\u0001').slice(0, -1)
  return new Map(examples.map(({ id }, i) => [id, readArguments((calls[i] ?? '').split('\0').slice(0, -1))]))
}

function readArguments(words: string[]): Sent {
  const sent: Sent = { method: '', url: '', headers: {}, body: undefined }
  for (let at = 0; at < words.length; at++) {
    const word = words[at] as string
    if (word === '-X') sent.method = words[++at] as string
    else if (word === '-d') sent.body = words[++at] as string
    else if (word === '-H') {
      const [name = '', value = ''] = (words[++at] as string).split(/: (.*)/s)
      sent.headers[name] = value
    } else sent.url = word
  }
  sent.method ||= sent.body === undefined ? 'GET' : 'POST'
  return sent
}

async function runInNode(code: string): Promise<Sent> {
  let sent: Sent | undefined
  const fetch = async (url: string, { method = 'GET', headers = {}, body }: Partial<Sent> = {}) => {
    sent = { method, url, headers, body }
    return { status: 200, json: async () => ({}), text: async () => '' }
  }
  const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor
  await new AsyncFunction('fetch', 'process', 'console', code)(fetch, { env: variables }, { log: () => {} })
  if (!sent) throw new Error('nothing was fetched')
  return sent
}

const byShell = readByShell()

describe.each(examples)('the example of $id', ({ id, path, method, operation, node }) => {
  const sent = byShell.get(id) as Sent

  test('asks what the description says, in curl and in Node', async () => {
    expect(sent.method).toBe(method.toUpperCase())
    const { origin, pathname, searchParams } = new URL(sent.url)
    expect(origin).toBe(ORIGIN)
    expect(pathname).toMatch(new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`))
    const required = (operation.parameters ?? []).filter((one) => one.in === 'query' && one.required)
    expect([...searchParams.keys()]).toEqual(required.map(({ name }) => name))
    const [key] = operation.security
    expect(sent.headers.Authorization).toBe(
      key && !('metricsToken' in key) && Object.keys(key).length > 0 ? 'Key secret' : undefined,
    )
    const inNode = await runInNode(node)
    const parsed = ({ body, ...rest }: Sent) => ({ ...rest, body: body?.startsWith('{') ? JSON.parse(body) : body })
    expect(parsed(inNode)).toEqual(parsed(sent))
  })

  test('has parameters and a body that the schema allows', () => {
    const segments = new URL(sent.url).pathname.split('/')
    const at = path.split('/')
    for (const { name, in: place, schema } of operation.parameters ?? []) {
      const value = place === 'path' ? decodeURIComponent(segments[at.indexOf(`{${name}}`)] ?? '') : undefined
      // A file is a name with an ending, and stands in no place of its own.
      if (value === undefined || value === '') continue
      expect(ajv.validate(pointed(schema), value), `${name}: ${ajv.errorsText()}`).toBe(true)
    }
    const content = operation.requestBody?.content['application/json']
    if (!content) return expect(sent.body?.startsWith('{') ?? false).toBe(false)
    expect(sent.headers['Content-Type']).toBe('application/json')
    const body = JSON.parse(sent.body as string)
    expect(ajv.validate(pointed(content.schema), body), ajv.errorsText()).toBe(true)
    const known = (content.schema as { properties?: object }).properties
    if (known) expect(Object.keys(known)).toEqual(expect.arrayContaining(Object.keys(body)))
  })
})

test('every example belongs to an operation that takes a body', () => {
  const takers = examples.filter(({ operation }) => operation.requestBody).map(({ id }) => id)
  expect(takers).toEqual(expect.arrayContaining(exampleNames))
})
