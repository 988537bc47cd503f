// Writes an example request for an operation, with curl and in Node, from the OpenAPI description. Values that only the
// reader knows (keys, ids) are environment variables, so that an example runs as it is.

import type { ApiDescription, JsonSchema, Operation, Parameter } from '../openapi.ts'
import { sampleOf } from './sample.ts'
import { hasVariable, readVariable, VARIABLES, variable } from './variable.ts'

export type RequestExample = { curl: string; node: string }

/** Usual values of these parameters; only the reader knows the others. */
const NAMES: Record<string, string> = {
  alias_label: 'external_id',
  alias_id: 'you',
  alias_label_to_delete: 'crm_id',
  external_user_id: 'you',
  domain: 'mail.example.com',
  address: 'you@example.com',
  token_type: 'Email',
  token: 'you@example.com',
  activity_type: 'OrderAttributes',
  activity_id: 'order-1042',
  platform: 'android',
  sdk_version: '5.9.5',
  version: '1',
  start: '2030-01-01T00:00:00Z',
  end: '2030-01-08T00:00:00Z',
  limit: '10',
  offset: '0',
}

export type CurlRequest = {
  method: string
  url: string
  headers: [name: string, value: string][]
  body: unknown
}
type Request = CurlRequest & { answersJson: boolean }

export function exampleRequest(
  api: ApiDescription,
  path: string,
  method: string,
  origin: string,
): RequestExample | undefined {
  const operation = api.paths[path]?.[method]
  if (!operation) return undefined
  const request = describeRequest(api, path, method, operation, origin)
  return { curl: writeCurl(request), node: writeNode(request) }
}

function describeRequest(
  api: ApiDescription,
  path: string,
  method: string,
  operation: Operation,
  origin: string,
): Request {
  const { parameters = [], requestBody, responses } = operation
  const inPath = (name: string) =>
    placeholderFor(parameters.find((it) => it.in === 'path' && it.name === name) ?? { name })
  const query = parameters
    .filter((it) => it.in === 'query' && it.required)
    .map((it) => `${it.name}=${placeholderFor(it)}`)
    .join('&')
  const url = `${origin}${path.replaceAll(/\{(\w+)\}/g, (_, name: string) => inPath(name))}${query && `?${query}`}`
  const [type, content] = Object.entries(requestBody?.content ?? {})[0] ?? []
  const isJson = type === 'application/json'
  const body = content && (withVariables(content.example) ?? (isJson ? sampleOf(content.schema, api) : ''))
  return {
    method: method.toUpperCase(),
    url,
    headers: [...authorization(operation), ...typeHeader(type)],
    body,
    answersJson: 'application/json' in (responses['200']?.content ?? responses['201']?.content ?? {}),
  }
}

const typeHeader = (type: string | undefined): [string, string][] =>
  type === undefined || type === '*/*' ? [] : [['Content-Type', type]]

/** App ids and parameters without a usual value become variables. */
const placeholderFor = ({ name, schema }: Pick<Parameter, 'name'> & { schema?: JsonSchema }): string => {
  const usual = Object.hasOwn(NAMES, name) && schema?.format !== 'uuid' ? NAMES[name] : undefined
  return usual === undefined ? variable(name) : encodeURIComponent(usual)
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** An id in an example stands for one of the reader's own, so it becomes a variable named after its field. */
function withVariables(value: unknown, name = 'id'): unknown {
  if (typeof value === 'string') return UUID.test(value) ? variable(name) : value
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((one) => withVariables(one, name.replace(/^included?_|s$/g, '')))
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, withVariables(one, key)]))
}

function authorization({ security }: Operation): [string, string][] {
  const [first] = security
  if (!first) return []
  if ('appKey' in first) return [['Authorization', `Key ${variable('APP_KEY')}`]]
  return 'organizationKey' in first ? [['Authorization', `Key ${variable('ORG_KEY')}`]] : []
}

export function writeCurl({ method, url, headers, body }: CurlRequest): string {
  const usual = body === undefined ? 'GET' : 'POST'
  const lines = [
    `curl ${method === usual ? '' : `-X ${method} `}"${url.replaceAll(VARIABLES, '$$$1')}"`,
    ...headers.map(([name, value]) => `-H "${name}: ${value.replaceAll(VARIABLES, '$$$1')}"`),
  ]
  if (body !== undefined) {
    const text = typeof body === 'string' ? body : write(body, JSON_STYLE)
    // A quote ends the quoted text, so that the shell expands the variable in between.
    const quoted = text.replaceAll("'", `'\\''`).replaceAll(VARIABLES, "'$$$1'").replaceAll('\n', '\n  ')
    lines.push(`-d '${quoted}'`)
  }
  return lines.join(' \\\n  ')
}

function writeNode(request: Request): string {
  const { method, url, headers, body, answersJson } = request
  const names = new Set([...JSON.stringify(request).matchAll(VARIABLES)].map((match) => match[1] as string))
  const options = [
    ...(method === 'GET' ? [] : [`method: '${method}'`]),
    ...(headers.length === 0 ? [] : [`headers: { ${headers.map(writeHeader).join(', ')} }`]),
    ...(body === undefined ? [] : [`body: ${typeof body === 'string' ? literal(body) : stringified(body)}`]),
  ]
  return [
    ...(names.size === 0 ? [] : [`const { ${[...names].join(', ')} } = process.env`]),
    `const response = await fetch(${literal(url)}${options.length === 0 ? '' : `, {\n  ${options.join(',\n  ')},\n}`})`,
    `console.log(response.status, await response.${answersJson ? 'json' : 'text'}())`,
  ].join('\n')
}

const stringified = (body: unknown) => `JSON.stringify(${write(body, JS_STYLE).replaceAll('\n', '\n  ')})`

const writeHeader = ([name, value]: [string, string]) => `${/^\w+$/.test(name) ? name : `'${name}'`}: ${literal(value)}`

/**
 * A JavaScript expression for a text: a template if it contains variables, an identifier if it is a single variable.
 */
function literal(text: string): string {
  const alone = readVariable(text)
  if (alone !== undefined) return alone
  const quote = hasVariable(text) ? '`' : "'"
  const special = quote === '`' ? /[\\`]|\$(?=\{)/g : /[\\']/g
  const escaped = text.replaceAll(special, (sign) => `\\${sign}`).replaceAll('\n', '\\n')
  return `${quote}${escaped.replaceAll(VARIABLES, `\${$1}`)}${quote}`
}

type Style = { key: (name: string) => string; text: (text: string) => string; trailing: string }

const JSON_STYLE: Style = { key: (name) => JSON.stringify(name), text: (text) => JSON.stringify(text), trailing: '' }
const JS_STYLE: Style = {
  key: (name) => (/^[A-Za-z_]\w*$/.test(name) ? name : literal(name)),
  text: literal,
  trailing: ',',
}

/** Longer values are written with one entry per line. */
const MAX_LINE = 64

function write(value: unknown, style: Style): string {
  if (typeof value === 'string') return style.text(value)
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const isList = Array.isArray(value)
  const entries = isList
    ? value.map((one) => write(one, style))
    : Object.entries(value).map(([name, one]) => `${style.key(name)}: ${write(one, style)}`)
  const [begin, end] = isList ? ['[', ']'] : ['{', '}']
  if (entries.length === 0) return begin + end
  const line = entries.join(', ')
  if (line.length <= MAX_LINE && !line.includes('\n')) return isList ? `[${line}]` : `{ ${line} }`
  return `${begin}\n  ${entries.map((entry) => entry.replaceAll('\n', '\n  ')).join(',\n  ')}${style.trailing}\n${end}`
}
