// What the tests of the kit put in place of keys, limits and domains.

import { connect } from 'node:net'
import inject, { type InjectOptions, type Response } from 'light-my-request'
import Type from 'typebox'
import { createMetrics } from '../src/http/metrics.ts'
import type { AppGate, Call, Charge, KeyLookup, KeyRecord, LimitCounter, Route } from '../src/http/route.ts'
import { route } from '../src/http/route.ts'
import { createHttpServer, type HttpServer, type HttpServerOptions } from '../src/http/server.ts'
import { type VirtualClock, virtualClock } from '../src/lib/clock.ts'
import { AppError, unavailable } from '../src/lib/errors.ts'
import { createLog } from '../src/lib/log.ts'
import { permissions } from '../src/lib/permissions.ts'
import { sha256 } from '../src/lib/secrets.ts'

export const OWN_ORG = '0a000000-0000-4000-8000-000000000001'
export const OTHER_ORG = '0b000000-0000-4000-8000-000000000001'
export const OWN_APP = 'aaaaaaaa-0000-4000-8000-000000000001'
export const SIBLING_APP = 'aaaaaaaa-0000-4000-8000-000000000002'
export const FOREIGN_APP = 'bbbbbbbb-0000-4000-8000-000000000001'
export const MISSING_APP = 'cccccccc-0000-4000-8000-000000000001'

const gate = (id: string, organizationId: string): AppGate => ({
  id,
  organizationId,
  plan: 'free',
  limits: {},
  keylessSdk: true,
  identityRequired: false,
  identityPublicKey: null,
})

const record = (keyId: string, changes: Partial<KeyRecord>): KeyRecord => ({
  keyId,
  kind: 'app',
  organizationId: OWN_ORG,
  appId: OWN_APP,
  permissions,
  ipAllowlist: [],
  ...changes,
})

export type FakeKeys = KeyLookup & {
  keys: Map<string, KeyRecord>
  apps: Map<string, AppGate>
  /** When set, every look fails with it. */
  failure: unknown
}

/** Keys by what they are: `own`, `sibling`, `no-permission`, `elsewhere` (wrong address), `foreign`, `org`, `other-org`. */
export function fakeKeys(): FakeKeys {
  const byHash = new Map<string, KeyRecord>()
  const keys = new Map<string, KeyRecord>([
    ['own', record('own', {})],
    ['sibling', record('sibling', { appId: SIBLING_APP })],
    ['no-permission', record('no-permission', { permissions: ['segments'] })],
    ['elsewhere', record('elsewhere', { ipAllowlist: ['192.0.2.0/24'] })],
    ['foreign', record('foreign', { appId: FOREIGN_APP, organizationId: OTHER_ORG })],
    ['org', record('org', { kind: 'org', appId: null })],
    ['org-elsewhere', record('org-elsewhere', { kind: 'org', appId: null, ipAllowlist: ['192.0.2.1'] })],
    ['other-org', record('other-org', { kind: 'org', appId: null, organizationId: OTHER_ORG })],
  ])
  for (const [key, value] of keys) byHash.set(sha256(key).toString('hex'), value)
  const apps = new Map(
    [gate(OWN_APP, OWN_ORG), gate(SIBLING_APP, OWN_ORG), gate(FOREIGN_APP, OTHER_ORG)].map((app) => [app.id, app]),
  )
  const fake: FakeKeys = {
    keys,
    apps,
    failure: undefined,
    find(hash) {
      if (fake.failure) return Promise.reject(fake.failure)
      return byHash.get(hash.toString('hex'))
    },
    findApp: async (appId) => apps.get(appId),
  }
  return fake
}

export type FakeLimits = LimitCounter & { taken: Charge[][]; waitSeconds: number }

export function fakeLimits(): FakeLimits {
  const fake: FakeLimits = {
    taken: [],
    waitSeconds: 0,
    has: (rule) => rule.startsWith('fake.'),
    isOff: () => false,
    take(_app, charges) {
      if (fake.waitSeconds > 0) return fake.waitSeconds
      fake.taken.push(charges)
      return 0
    },
  }
  return fake
}

const Anything = Type.Object({})
const UserBody = Type.Object({
  identity: Type.Optional(Type.Record(Type.String(), Type.String({ maxLength: 128 }))),
  subscriptions: Type.Optional(
    Type.Array(Type.Object({ type: Type.String(), token: Type.Optional(Type.Union([Type.String(), Type.Null()])) })),
  ),
  properties: Type.Optional(
    Type.Object({
      kind: Type.Optional(Type.Union([Type.Literal('a'), Type.Literal('b')])),
      session_time: Type.Optional(Type.Integer({ minimum: 0 })),
    }),
  ),
})

const echo = ({ params, query, body, app, caller, ip, now }: Call) => ({
  status: 200,
  body: { params, query: { ...query }, body, app: app?.id, caller, ip, now },
})

/** One route for each way in which routes differ. */
export function fakeRoutes(seen: Call[] = []): Route[] {
  const app = { kind: 'app', permission: 'users', appIn: 'path' } as const
  const answers = { 200: Anything }
  const remember = (call: unknown) => {
    seen.push(call as Call)
    return echo(call as Call)
  }
  return [
    route({
      operation: 'createUser',
      method: 'POST',
      path: '/apps/:app_id/users',
      tag: 'Users',
      summary: 'Create user',
      access: { ...app, keyless: () => true },
      errors: 'users',
      limits: [{ rule: 'fake.write' }],
      body: UserBody,
      answers,
      handle: remember,
    }),
    route({
      operation: 'viewUser',
      method: 'GET',
      path: '/apps/:app_id/users/by/:label/:value',
      tag: 'Users',
      summary: 'View user',
      access: { ...app, keyless: ({ label }) => label === 'onesignal_id' },
      errors: 'users',
      limits: [
        { rule: 'fake.read', counter: 'reads' },
        { rule: 'fake.one', subjects: ({ params }) => [params.value as string] },
        { rule: 'fake.page', when: ({ query }) => query.offset !== undefined },
      ],
      query: Type.Object({
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 50, default: 50 })),
        offset: Type.Optional(Type.Integer({ minimum: 0 })),
        all: Type.Optional(Type.Boolean()),
        names: Type.Optional(Type.Array(Type.String())),
      }),
      answers,
      handle: remember,
    }),
    route({
      operation: 'deleteSubscription',
      method: 'DELETE',
      path: '/apps/:app_id/subscriptions/:subscription_id',
      tag: 'Users',
      summary: 'Delete subscription',
      access: app,
      errors: 'users',
      limits: [],
      params: Type.Object({ subscription_id: Type.String({ format: 'uuid' }) }),
      answers,
      handle: remember,
    }),
    route({
      operation: 'deleteSegment',
      method: 'DELETE',
      path: '/apps/:app_id/segments/:segment_id',
      tag: 'Segments',
      summary: 'Delete segment',
      access: { ...app, permission: 'segments' },
      errors: 'segments',
      limits: [{ rule: 'fake.write' }],
      answers,
      handle: remember,
    }),
    route({
      operation: 'cancelMessage',
      method: 'DELETE',
      path: '/notifications/:message_id',
      tag: 'Messages',
      summary: 'Cancel message',
      access: { ...app, permission: 'messages', appIn: 'query' },
      errors: 'messages',
      limits: [{ rule: 'fake.write' }],
      query: Type.Object({ app_id: Type.String() }),
      answers,
      handle: remember,
    }),
    route({
      operation: 'addPlayer',
      method: 'POST',
      path: '/players',
      tag: 'Legacy',
      summary: 'Add a player',
      access: { ...app, appIn: 'body', foreign: 'bad-key' },
      errors: 'legacy',
      limits: [{ rule: 'fake.write' }],
      body: Type.Object({ app_id: Type.String(), device_type: Type.Integer() }),
      answers,
      handle: remember,
    }),
    route({
      operation: 'updateApp',
      method: 'PUT',
      path: '/apps/:app_id',
      tag: 'Apps',
      summary: 'Update an app',
      access: { kind: 'organization' },
      errors: 'apps',
      limits: [{ rule: 'fake.write' }],
      body: Type.Object({ name: Type.String() }),
      answers,
      handle: remember,
    }),
    route({
      operation: 'listApps',
      method: 'GET',
      path: '/apps',
      tag: 'Apps',
      summary: 'View apps',
      access: { kind: 'organization' },
      errors: 'apps',
      limits: [],
      answers,
      handle: remember,
    }),
    route({
      operation: 'providerMetrics',
      method: 'GET',
      path: '/apps/:app_id/metrics/:domain',
      tag: 'Email',
      summary: 'Provider metrics',
      access: app,
      errors: 'metrics',
      limits: [],
      answers,
      handle: remember,
    }),
    route({
      operation: 'fail',
      method: 'POST',
      path: '/fail/:how',
      tag: 'Test',
      summary: 'Fail',
      access: { kind: 'public' },
      errors: 'users',
      limits: [],
      answers,
      params: Type.Object({ how: Type.String() }),
      handle: ({ params }) => fail(params.how),
    }),
  ]
}

function fail(how: string): never {
  if (how === 'conflict') throw new AppError('conflict', { code: 'user-2', title: 'Taken', meta: { external_id: 'x' } })
  if (how === 'down') throw unavailable()
  if (how === 'data')
    throw Object.assign(new Error('invalid input "planted-secret"'), { code: '22P02', severity: 'ERROR' })
  if (how === 'constraint')
    throw Object.assign(new Error('Key (x)=(planted-secret)'), { code: '23505', severity: 'ERROR' })
  throw new TypeError('cannot read properties of undefined')
}

export type FakeServer = {
  app: HttpServer & { inject(request: InjectOptions): Promise<Response> }
  keys: FakeKeys
  limits: FakeLimits
  clock: VirtualClock
  log: string[]
  /** The calls that reached a handler. */
  seen: Call[]
  close(): Promise<void>
}

export function fakeServer(options: Partial<HttpServerOptions> & { logLevel?: string } = {}): FakeServer {
  const keys = fakeKeys()
  const limits = fakeLimits()
  const clock = virtualClock()
  const log: string[] = []
  const seen: Call[] = []
  const metrics = createMetrics()
  const server = createHttpServer({
    routes: fakeRoutes(seen),
    keys,
    limits,
    clock,
    log: createLog(options.logLevel ?? 'info', { write: (line: string) => void log.push(line) }),
    metrics,
    isReady: () => true,
    ...options,
  })
  const close = async () => {
    metrics.close()
    await server.close()
  }
  const app = { ...server, inject: (request: InjectOptions) => inject(server.answer, request) }
  return { app, keys, limits, clock, log, seen, close }
}

/** Write bytes to a socket and read until the other side closes it, or until `enough` says so. */
export function talk(
  port: number,
  bytes: string | Buffer,
  enough: (text: string) => boolean = () => false,
): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    let text = ''
    const end = () => {
      socket.destroy()
      resolve(text)
    }
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      if (enough(text)) end()
    })
    socket.on('close', end)
    socket.on('error', end)
  })
}

export async function listen(app: HttpServer): Promise<number> {
  await app.listen({ port: 0, host: '127.0.0.1' })
  return (app.server.address() as { port: number }).port
}
