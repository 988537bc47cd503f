// Generates the OpenAPI description from the routes. Only declared routes can be served, so it cannot be wrong.

import type { ErrorKind } from '../lib/errors.ts'
import { FORM_BODY, JSON_BODY } from './body/read.ts'
import { type ErrorStyle, errorStatus, errorStyles } from './errors.ts'
import { DEFAULT_MAX_BODY_BYTES, pathParams } from './plan.ts'
import type { Route, RouteAccess } from './route.ts'

export type JsonSchema = Record<string, unknown>
export type Parameter = {
  name: string
  in: 'path' | 'query'
  required: boolean
  description?: string
  schema: JsonSchema
}
export type ResponseObject = {
  description: string
  headers?: JsonSchema
  content?: Record<string, { schema: JsonSchema }>
}
export type Operation = {
  operationId: string
  summary: string
  description?: string
  tags: string[]
  security: Record<string, string[]>[]
  parameters?: Parameter[]
  requestBody?: { required: boolean; content: Record<string, { schema: JsonSchema; example?: unknown }> }
  responses: Record<string, ResponseObject>
}
export type ApiDescription = {
  openapi: string
  info: { title: string; version: string; description: string; license: JsonSchema }
  servers: { url: string; description: string }[]
  tags: { name: string }[]
  paths: Record<string, Record<string, Operation>>
  components: { securitySchemes: Record<string, JsonSchema>; schemas: Record<string, JsonSchema> }
}

/** The version of the public API that this server implements. */
export const INTERFACE_VERSION = '11.6'

export function describeApi(routes: readonly Route[]): ApiDescription {
  const sorted = [...routes].sort(byPathAndMethod)
  const paths: ApiDescription['paths'] = {}
  for (const route of sorted) {
    const path = route.path.replaceAll(/:(\w+)/g, '{$1}')
    const operations = paths[path] ?? {}
    paths[path] = operations
    operations[route.method.toLowerCase()] = describeOperation(route)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Carillon',
      version: INTERFACE_VERSION,
      description:
        'A self-hosted customer-messaging server. Every operation is also served under `/api/v1`. ' +
        'Every answer is JSON with a Content-Type, whatever its status, unless the operation says otherwise.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [
      { url: '/', description: 'Current address' },
      { url: '/api/v1', description: 'Address of older clients' },
    ],
    // In the order of the routes: what readers look for first comes first.
    tags: [...new Set(routes.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: { securitySchemes, schemas: { ...errorSchemas, ...componentsOf(routes) } },
  }
}

const componentsOf = (routes: readonly Route[]): Record<string, JsonSchema> =>
  Object.fromEntries(
    routes.flatMap(({ components = {} }) => Object.entries(components).map(([name, schema]) => [name, plain(schema)])),
  )

const METHOD_ORDER = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

function byPathAndMethod(a: Route, b: Route): number {
  if (a.path !== b.path) return a.path < b.path ? -1 : 1
  return METHOD_ORDER.indexOf(a.method) - METHOD_ORDER.indexOf(b.method)
}

const authorization = (description: string) => ({ type: 'apiKey', in: 'header', name: 'Authorization', description })

const securitySchemes: Record<string, JsonSchema> = {
  appKey: authorization('`Key <app API key>`. `Basic` and `Bearer` in place of `Key` mean the same.'),
  organizationKey: authorization('`Key <organization API key>`.'),
  metricsToken: { type: 'http', scheme: 'bearer', description: 'The METRICS_TOKEN of the server’s settings.' },
  identityToken: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'Signed by the customer with ES256 or RS256, for apps that ask for identity verification.',
  },
}

const strings = { type: 'array', items: { type: 'string' }, minItems: 1 }
const objects = {
  type: 'array',
  minItems: 1,
  items: {
    type: 'object',
    required: ['code', 'title'],
    properties: { code: { type: 'string' }, title: { type: 'string' }, meta: { type: 'object' } },
  },
}
const failed = { success: { type: 'boolean', const: false } }
const reference = { reference: { type: 'array', items: { type: 'string' } } }
const errorBody = (errors: JsonSchema, more: Record<string, JsonSchema> = {}) => ({
  type: 'object',
  required: ['errors'],
  properties: { ...more, errors },
})

const errorSchemas: Record<string, JsonSchema> = {
  ErrorObjects: errorBody(objects),
  ErrorStrings: errorBody(strings),
  FailedStrings: errorBody(strings, { ...failed, ...reference }),
  KeyRefused: errorBody(strings, { ...failed, ...reference }),
}

const schemaRef = (name: string) => ({ $ref: `#/components/schemas/${name}` })

function security(access: RouteAccess): Record<string, string[]>[] {
  if (access.kind === 'public') return []
  if (access.kind === 'organization') return [{ organizationKey: [] }]
  if (access.kind === 'metrics') return [{ organizationKey: [] }, { metricsToken: [] }]
  return access.keyless ? [{ appKey: [] }, { identityToken: [] }, {}] : [{ appKey: [] }]
}

function describePermissions({ permission, also }: Extract<RouteAccess, { kind: 'app' }>): string {
  if (!also) return `permission \`${permission}\``
  const both = `\`${permission}\` and \`${also.permission}\``
  return also.when
    ? `permission \`${permission}\`, and \`${also.permission}\` for ${also.when.reason}`
    : `permissions ${both}`
}

export function describeAccess(access: RouteAccess): string {
  switch (access.kind) {
    case 'public':
      return 'No key is needed.'
    case 'organization':
      return 'Takes an organization key.'
    case 'metrics':
      return 'Takes an organization key or the METRICS_TOKEN of the settings.'
    case 'app': {
      const words = `Takes an app key with the ${describePermissions(access)}.`
      return access.keyless
        ? `${words} SDKs may come in without a key where the app allows it, or with an identity token where it asks for one.`
        : words
    }
  }
}

function describeLimits({ limits, operation }: Route): string {
  if (limits.length === 0) return ''
  const words = limits.map(({ rule, counter, subjects }) => {
    const shared = counter !== undefined && counter !== operation ? `, counted together as \`${counter}\`` : ''
    return `\`${rule}\`${subjects ? ', for each thing it is about' : ''}${shared}`
  })
  return `Rate limits: ${words.join('; ')}.`
}

function describeOperation(route: Route): Operation {
  const size = route.body && route.maxBodyBytes !== undefined && route.maxBodyBytes !== DEFAULT_MAX_BODY_BYTES
  const words = [
    route.description,
    describeAccess(route.access),
    describeLimits(route),
    size ? `The body may have ${route.maxBodyBytes} bytes.` : '',
  ]
  const parameters = [...describePathParams(route), ...describeQuery(route)]
  return {
    operationId: route.operation,
    summary: route.summary,
    description: words.filter(Boolean).join('\n\n'),
    tags: [route.tag],
    security: security(route.access),
    ...(parameters.length > 0 && { parameters }),
    ...(route.body && {
      requestBody: {
        required: !route.mayOmitBody,
        content: {
          [mediaType(route)]: {
            schema: plain(route.describedBody ?? route.body),
            ...(route.example !== undefined && { example: route.example }),
          },
        },
      },
    }),
    responses: { ...describeAnswers(route), ...describeErrors(route) },
  }
}

const mediaType = ({ isRaw, isForm }: Route) => (isRaw ? '*/*' : isForm ? FORM_BODY : JSON_BODY)

/** Drops what only TypeScript uses from a schema. */
const plain = (schema: unknown): JsonSchema => JSON.parse(JSON.stringify(schema))

type ObjectSchema = { properties?: Record<string, JsonSchema & { description?: string }>; required?: string[] }

function describePathParams(route: Route): Parameter[] {
  const { properties = {} } = (route.params ?? {}) as ObjectSchema
  return pathParams(route.path).map((name) => {
    const schema = plain(
      properties[name] ?? (name === 'app_id' ? { type: 'string', format: 'uuid' } : { type: 'string' }),
    )
    return { name, in: 'path', required: true, ...described(properties[name]), schema }
  })
}

function describeQuery(route: Route): Parameter[] {
  const { properties = {}, required = [] } = (route.query ?? {}) as ObjectSchema
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: 'query',
    required: required.includes(name) && schema.default === undefined,
    ...described(schema),
    schema: plain(schema),
  }))
}

const described = (schema: { description?: string } | undefined) =>
  schema?.description === undefined ? {} : { description: schema.description }

function describeAnswers({ answers, produces = 'application/json' }: Route): Record<string, ResponseObject> {
  return Object.fromEntries(
    Object.entries(answers).map(([status, schema]) => [
      status,
      { description: 'Success', content: { [produces]: { schema: plain(schema) } } },
    ]),
  )
}

const ERROR_WORDS: Partial<Record<ErrorKind, string>> = {
  invalid: 'The request is not valid',
  unauthenticated: 'The key is missing or no good',
  forbidden: 'The key may not do this, or not from this address',
  'not-found': 'Not found, or not within the reach of this key',
  conflict: 'In conflict with what is stored',
  unprocessable: 'Understood, and not possible in this state',
  'too-large': 'The body is too large',
  'unsupported-media-type': 'The body is not of the declared type',
  limited: 'Too many requests',
  unavailable: 'Temporarily unavailable',
}

/** Requests without a key are counted by address. */
const isCounted = (access: RouteAccess) =>
  (access.kind === 'app' && access.keyless !== undefined) || (access.kind === 'public' && access.isCounted === true)

function errorKinds({ access, body, limits, path, errors }: Route): ErrorKind[] {
  const kinds: ErrorKind[] = ['invalid']
  if (access.kind !== 'public') kinds.push('unauthenticated', 'forbidden')
  if (access.kind === 'app' || path.includes(':')) kinds.push('not-found')
  if (body) kinds.push('conflict', 'too-large', 'unsupported-media-type')
  if (body && 'states' in errorStyles[errors]) kinds.push('unprocessable')
  // Bodies wait for memory, of which each address has a share.
  if (limits.length > 0 || isCounted(access) || body) kinds.push('limited')
  kinds.push('unavailable')
  return kinds
}

function errorSchema(style: ErrorStyle, kind: ErrorKind): JsonSchema {
  const { shape, limited, missing, ...rest } = errorStyles[style]
  const named = (form: 'objects' | 'strings') =>
    schemaRef(form === 'objects' ? 'ErrorObjects' : 'success' in rest ? 'FailedStrings' : 'ErrorStrings')
  if (kind === 'unavailable') return schemaRef('ErrorStrings')
  if (kind === 'limited') return named(limited)
  if (kind === 'unauthenticated') return { anyOf: [named(missing), schemaRef('KeyRefused')] }
  return named(shape)
}

function describeErrors(route: Route): Record<string, ResponseObject> {
  const responses: Record<string, ResponseObject> = {}
  for (const kind of errorKinds(route)) {
    const status = errorStatus(kind, route.errors)
    const before = responses[status]
    const description = ERROR_WORDS[kind] ?? kind
    responses[status] = {
      description: before ? `${before.description}. ${description}` : description,
      ...(kind === 'limited' && {
        headers: { 'Retry-After': { required: true, schema: { type: 'integer', minimum: 0 } } },
      }),
      content: { 'application/json': { schema: errorSchema(route.errors, kind) } },
    }
  }
  responses['500'] = {
    description: 'A fault of the server',
    content: { 'application/json': { schema: schemaRef('ErrorStrings') } },
  }
  return responses
}
