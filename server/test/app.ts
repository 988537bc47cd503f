// A whole server in this process, on a database of its own, for tests that speak HTTP.

import { startApp } from '../src/app.ts'
import { SYSTEM } from '../src/apps/app.ts'
import { createApp, createOrganization } from '../src/apps/create.ts'
import { issueKey } from '../src/apps/keys/keys.ts'
import type { AppOptions } from '../src/composition/infrastructure.ts'
import { systemClock } from '../src/lib/clock.ts'
import type { AppId, OrganizationId } from '../src/lib/ids.ts'
import { createLog } from '../src/lib/log.ts'
import { type Config, readConfig } from '../src/settings/config.ts'
import type { Pool } from '../src/storage/db.ts'
import { type TestDatabase, testDatabase } from './database.ts'

// biome-ignore lint/suspicious/noExplicitAny: an answer is read as the JSON it is; the assertions are its type
export type Answer<Body = any> = { status: number; body: Body; headers: Headers }
export type Request = { method?: string; body?: unknown; raw?: string | Buffer; headers?: Record<string, string> }

export type Tenant = { id: AppId; key: string; organizationId: OrganizationId; organizationKey: string }

export type TestApp = {
  url: string
  db: Pool
  connection: TestDatabase['connection']
  mailPort: number | undefined
  /** The first organization and app, whose key requests carry unless they say otherwise. */
  tenant: Tenant
  /** Another organization with an app of its own. */
  anotherTenant(): Promise<Tenant>
  request(path: string, request?: Request): Promise<Answer>
  /** Below `/apps/{id}` of the first app. */
  app(path: string, request?: Request): Promise<Answer>
  close(): Promise<void>
}

export type TestAppOptions = {
  limits?: Config['limits']
  clock?: AppOptions['clock']
  log?: AppOptions['log']
  secretKey?: string
  publicUrl?: string
  /** The way to providers, where it is another than the usual one. */
  providers?: Partial<Config['providers']>
  eventRetentionDays?: number
  requestBodyMb?: number
  /** Only answers requests unless told; `all` also works through what they leave to be done. */
  role?: Config['role']
  trustProxy?: boolean
  journeyMinWaitSeconds?: number
  emailAttachmentsMb?: number
  defaultPlan?: Config['defaultPlan']
  countingConnections?: number
  /** Takes in mail that comes back. */
  listensForMail?: boolean
  /** Another server on the database of this one, with the same first app; it leaves the database alone when it closes. */
  beside?: TestApp
}

function testConfig({ clock, log, secretKey, beside, listensForMail, providers, ...settings }: TestAppOptions): Config {
  // Nobody is asked for DNS who is not part of the test.
  const { config } = readConfig({ RESOLVER: '127.0.0.1:1' })
  return {
    ...config,
    port: 0,
    host: '127.0.0.1',
    limits: 'off',
    role: 'api',
    maxInFlight: 200,
    drainSeconds: 0,
    countingConnections: 3,
    audienceConnections: 3,
    mailListen: listensForMail ? { host: '127.0.0.1', port: 0 } : undefined,
    providers: { ...config.providers, ...providers },
    ...settings,
  }
}

export async function testApp(options: TestAppOptions = {}): Promise<TestApp> {
  const { beside } = options
  const database = beside ? { ...beside, close: async () => {} } : await testDatabase()
  const clock = options.clock ?? systemClock()
  const running = await startApp({
    config: testConfig(options),
    connection: database.connection,
    secretKey: options.secretKey ?? 'the secret key of the tests',
    clock,
    log: options.log ?? createLog('error'),
  })
  const url = running.address as string
  const ctx = { db: database.db, clock, defaultPlan: options.defaultPlan }

  async function makeTenant(): Promise<Tenant> {
    const organizationId = await createOrganization(ctx, { name: 'Test organization' }, SYSTEM)
    const organizationKey = await issueKey(ctx, { kind: 'org', organizationId }, { name: 'test' }, SYSTEM)
    const id = await createApp(ctx, organizationId, { name: 'Test app' }, SYSTEM)
    const key = await issueKey(ctx, { kind: 'app', appId: id }, { name: 'test' }, SYSTEM)
    return { id, key: key.key, organizationId, organizationKey: organizationKey.key }
  }
  const tenant = beside?.tenant ?? (await makeTenant())

  async function request(path: string, { method, body, raw, headers }: Request = {}): Promise<Answer> {
    const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body))
    const response = await fetch(`${url}${path}`, {
      method: method ?? (payload === undefined ? 'GET' : 'POST'),
      headers: {
        authorization: `Key ${tenant.key}`,
        ...(payload !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(payload !== undefined && { body: payload as string }),
    })
    const text = await response.text()
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text), headers: response.headers }
  }

  return {
    url,
    db: database.db,
    connection: database.connection,
    mailPort: running.mailPort,
    tenant,
    anotherTenant: makeTenant,
    request,
    app: (path, init) => request(`/apps/${tenant.id}${path}`, init),
    async close() {
      await running.close()
      await database.close()
    },
  }
}
