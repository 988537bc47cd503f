// Every route, asked by every kind of caller, about what is theirs, somebody else's, or not there. The routes come from the
// table of routes, so a new one is asked too.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createApp, setApp } from '../src/apps/create.ts'
import { issueKey, revokeKey } from '../src/apps/keys.ts'
import { SYSTEM } from '../src/apps/schema.ts'
import { declaredRoutes } from '../src/declared-routes.ts'
import type { Route } from '../src/http/route.ts'
import { systemClock } from '../src/lib/clock.ts'
import { type AppId, newId } from '../src/lib/ids.ts'
import { type Permission, permissions } from '../src/lib/permissions.ts'
import { type TestApp, testApp } from './app.ts'
import { checksums } from './authorization/checksums.ts'
import { labelsOf, namesThings, paramsOf, requestFor, type Things, unknownThings } from './authorization/requests.ts'
import { type CallerKind, isAboutAnApp, judge, KEYLESS, nameOf, type Target, told } from './authorization/rules.ts'

const { domains: domainRoutes, kit } = declaredRoutes()
const routes: Route[] = [...domainRoutes, ...kit]

type Caller = {
  name: string
  kind: CallerKind
  headers: (route: Route) => Record<string, string>
  /** SDKs say nothing of who they are, so an app of others is as open to them as their own. */
  asks?: readonly Target[]
}

const ALL: readonly Target[] = ['own', 'sibling', 'foreign', 'missing']
const SDK = { 'sdk-version': 'onesignal/web/160510', accept: 'application/vnd.onesignal.v1+json' }

let server: TestApp
let callers: Caller[]
let apps: Record<Target, string>
/** Own apps that SDKs cannot come into without more: one is switched off, one asks for proof. */
let closedApps: string[]
let things: Record<Target, Things>
let organizations: Record<string, string>
let keys: { own: string; sibling: string; foreign: string }

beforeAll(async () => {
  server = await testApp({ limits: 'off' })
  const ctx = { db: server.db, clock: systemClock() }
  const { tenant } = server
  const stranger = await server.anotherTenant()
  const appKey = async (appId: AppId, more: object = {}) =>
    (await issueKey(ctx, { kind: 'app', appId }, { name: 'test', ...more }, SYSTEM)).key
  const makeApp = (more: object = {}) => createApp(ctx, tenant.organizationId, { name: 'Another', ...more }, SYSTEM)

  const sibling = await makeApp()
  const proving = await makeApp()
  await setApp(ctx, proving, { identityPublicKey: PUBLIC_KEY, identityRequired: true }, SYSTEM)
  closedApps = [await makeApp({ keylessSdk: false }), proving]
  organizations = {
    [tenant.id]: tenant.organizationId,
    [sibling]: tenant.organizationId,
    [stranger.id]: stranger.organizationId,
  }
  apps = { own: tenant.id, sibling, foreign: stranger.id, missing: newId() }
  keys = { own: tenant.key, sibling: await appKey(sibling), foreign: stranger.key }

  const lacking = new Map<Permission, string>()
  for (const permission of permissions)
    lacking.set(permission, await appKey(tenant.id, { permissions: permissions.filter((it) => it !== permission) }))
  const revoked = await issueKey(ctx, { kind: 'app', appId: tenant.id }, { name: 'revoked' }, SYSTEM)
  await revokeKey(ctx, { kind: 'app', appId: tenant.id }, revoked.keyId, SYSTEM)
  const elsewhere = await appKey(tenant.id, { ipAllowlist: ['192.0.2.0/24'] })
  const here = await appKey(tenant.id, { ipAllowlist: ['192.0.2.0/24', '127.0.0.0/8'] })

  const written = (authorization: string) => () => ({ authorization })
  callers = [
    { name: 'own key', kind: 'own', headers: written(`Key ${keys.own}`) },
    { name: 'own key, Basic', kind: 'own', headers: written(`Basic ${keys.own}`) },
    { name: 'own key, Bearer', kind: 'own', headers: written(`Bearer ${keys.own}`) },
    { name: 'own key, lower case', kind: 'own', headers: written(`key ${keys.own}`) },
    { name: 'own key, allowed here', kind: 'own', headers: written(`Key ${here}`) },
    { name: 'own key of an SDK', kind: 'own', headers: () => ({ ...SDK, authorization: `Key ${keys.own}` }) },
    {
      name: 'own key without the permission',
      kind: 'own without the permission',
      headers: ({ access }) => ({
        authorization: `Key ${lacking.get(access.kind === 'app' ? access.permission : 'users')}`,
      }),
    },
    { name: 'own key, not allowed here', kind: 'own from elsewhere', headers: written(`Key ${elsewhere}`) },
    { name: 'key of a sibling app', kind: 'sibling app', headers: written(`Key ${keys.sibling}`) },
    { name: 'key of a foreign app', kind: 'foreign app', headers: written(`Key ${keys.foreign}`) },
    { name: 'own organization key', kind: 'own organization', headers: written(`Key ${tenant.organizationKey}`) },
    {
      name: 'foreign organization key',
      kind: 'foreign organization',
      headers: written(`Key ${stranger.organizationKey}`),
    },
    { name: 'revoked key', kind: 'bad key', headers: written(`Key ${revoked.key}`) },
    { name: 'truncated key', kind: 'bad key', headers: written(`Key ${keys.own.slice(0, -1)}`) },
    { name: 'unknown key', kind: 'bad key', headers: written(`Key ${keys.own.slice(0, -4)}0000`) },
    { name: 'key behind a wrong word', kind: 'bad key', headers: written(`Token ${keys.own}`) },
    { name: 'key without a word', kind: 'bad key', headers: written(keys.own) },
    {
      name: 'revoked key of an SDK',
      kind: 'bad key',
      headers: () => ({ ...SDK, authorization: `Key ${revoked.key}` }),
    },
    { name: 'nobody', kind: 'nobody', headers: () => ({}) },
    { name: 'SDK version alone', kind: 'nobody', headers: () => ({ 'sdk-version': SDK['sdk-version'] }) },
    { name: 'SDK media type alone', kind: 'nobody', headers: () => ({ accept: SDK.accept }) },
    { name: 'SDK', kind: 'sdk', headers: () => SDK, asks: ['own', 'missing'] },
  ]
  things = {
    own: await makeThings(apps.own, keys.own, await aKeyId(apps.own)),
    sibling: await makeThings(apps.sibling, keys.sibling, await aKeyId(apps.sibling)),
    foreign: await makeThings(apps.foreign, keys.foreign, await aKeyId(apps.foreign)),
    missing: unknownThings(),
  }
  // Apps get their pair for web push when they are first looked at; that is no change that a later look makes.
  for (const { organizationKey } of [tenant, stranger])
    await server.request('/apps', { headers: { authorization: `Key ${organizationKey}` } })
}, 60_000)
afterAll(() => server.close())

const PUBLIC_KEY = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEVs/o5+uQbTjL3chynL4wXgUg2R9
q9UU8I5mEovUf86QZ7kOBIjJwqnzD1omageEHWwHdBO6B+dFabmdT9POxg==
-----END PUBLIC KEY-----
`

async function makeThings(appId: string, key: string, keyId: string): Promise<Things> {
  const externalId = newId()
  const email = `${newId()}@example.com`
  const { status, body } = await server.request(`/apps/${appId}/users`, {
    headers: { authorization: `Key ${key}` },
    body: { identity: { external_id: externalId, mark: newId() }, subscriptions: [{ type: 'Email', token: email }] },
  })
  if (status !== 201) throw new Error(`no user was made: ${JSON.stringify(body)}`)
  const template = await server.request('/templates', {
    headers: { authorization: `Key ${key}` },
    body: { app_id: appId, name: 'A template', contents: { en: 'Hello' } },
  })
  if (template.status !== 200) throw new Error(`no template was made: ${JSON.stringify(template.body)}`)
  const segment = await server.request(`/apps/${appId}/segments`, {
    headers: { authorization: `Key ${key}` },
    body: { name: newId(), filters: [{ field: 'country', relation: 'exists' }] },
  })
  if (segment.status !== 201) throw new Error(`no segment was made: ${JSON.stringify(segment.body)}`)
  return {
    organizationId: organizations[appId] as string,
    keyId,
    userId: body.identity.onesignal_id,
    externalId,
    subscriptionId: body.subscriptions[0].id,
    email,
    templateId: template.body.id,
    segmentId: segment.body.id,
  }
}

async function aKeyId(appId: AppId): Promise<string> {
  const ctx = { db: server.db, clock: systemClock() }
  return (await issueKey(ctx, { kind: 'app', appId }, { name: 'a thing' }, SYSTEM)).keyId
}

/** Of the own app. It may have 16 keys, so a new one is made only for a route that names it. */
const freshThings = async ({ path }: Route) =>
  makeThings(apps.own, keys.own, path.includes(':token_id') ? await aKeyId(apps.own) : things.own.keyId)

type Answer = { status: number; text: string; type: string | null }

async function ask(route: Route, caller: Caller, appId: string, about: Things, label: string): Promise<Answer> {
  const { method, path, body } = requestFor(route, appId, about, label)
  const response = await fetch(`${server.url}${path}`, {
    method,
    headers: { ...caller.headers(route), ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status: response.status, text: await response.text(), type: response.headers.get('content-type') }
}

type Case = { route: Route; caller: Caller; target: Target; label: string; isOpen: boolean; appId: string }

const verdictOf = ({ route, caller, target, label, isOpen, appId }: Case) =>
  judge(route, caller.kind, target, paramsOf(route, appId, things[target], label), isOpen)

function casesOf(route: Route): Case[] {
  const hasTargets = isAboutAnApp(route) || route.path.includes(':organization_id')
  return callers.flatMap((caller) =>
    labelsOf(route).flatMap((label) => [
      ...(hasTargets ? (caller.asks ?? ALL) : (['own'] as const)).map((target) => ({
        route,
        caller,
        target,
        label,
        isOpen: true,
        appId: apps[target],
      })),
      ...(caller.kind === 'sdk' && isAboutAnApp(route)
        ? closedApps.map((appId) => ({ route, caller, target: 'own' as const, label, isOpen: false, appId }))
        : []),
    ]),
  )
}

/** Whose things are not the caller's: a sibling app's are, where it is the organization that is named. */
const strangers = ({ path }: Route): Target[] =>
  path.includes(':organization_id') ? ['foreign'] : ['sibling', 'foreign']

const describeCase = ({ caller, target, label, appId }: Case) =>
  `${caller.name} -> ${closedApps.includes(appId) ? 'closed' : target} app by ${label}`

/** A few at a time: thousands of requests need not be thousands of sockets. */
async function inParallel<In, Out>(list: readonly In[], run: (item: In) => Promise<Out>): Promise<Out[]> {
  const out: Out[] = new Array(list.length)
  const entries = list.entries()
  const work = async () => {
    for (const [i, item] of entries) out[i] = await run(item)
  }
  await Promise.all(Array.from({ length: 16 }, work))
  return out
}

const everybody = () => Object.values(apps).concat(closedApps)

describe('who is refused', () => {
  let before: string[]
  beforeAll(async () => {
    before = await checksums(server.db, everybody())
  })

  test.each(routes.map((route) => [nameOf(route), route] as const))('%s', async (_, route) => {
    const cases = casesOf(route).filter((it) => verdictOf(it) !== 'let in')
    const answers = await inParallel(cases, (it) => ask(route, it.caller, it.appId, things[it.target], it.label))
    const wrong = cases.flatMap((it, i) => {
      const verdict = verdictOf(it)
      if (verdict === 'let in') return []
      const { status, text } = answers[i] as Answer
      const body = JSON.parse(text)
      const expected = told(verdict, route)
      const isAsTold =
        status === expected.status &&
        (body.reference !== undefined) === expected.hasReference &&
        (expected.isObject === undefined || (typeof body.errors[0] === 'object') === expected.isObject) &&
        (verdict !== 'no key' || !expected.isObject || body.errors[0].code === 'auth-1')
      return isAsTold ? [] : [`${describeCase(it)}: ${verdict}, but ${status} ${text}`]
    })
    expect(wrong).toEqual([])

    // An app that is not there, and one that is not theirs: not a byte between them.
    const unknown = cases.flatMap((it, i) => (verdictOf(it) === 'no such app' ? [{ ...it, answer: answers[i] }] : []))
    const differing = unknown.filter(({ caller, label, answer }) => {
      const missing = unknown.find((it) => it.caller === caller && it.label === label && it.target === 'missing')
      return JSON.stringify(answer) !== JSON.stringify(missing?.answer)
    })
    expect(differing.map((it) => `${describeCase(it)}: ${it.answer?.text}`)).toEqual([])
  })

  test('and changes nothing', async () => {
    expect(await checksums(server.db, everybody())).toEqual(before)
  })
})

describe('who is let in', () => {
  let before: string[]
  const others = () => everybody().filter((id) => id !== apps.own)
  beforeAll(async () => {
    before = await checksums(server.db, others())
  })

  test.each(routes.map((route) => [nameOf(route), route] as const))('%s', async (_, route) => {
    const cases = casesOf(route).filter((it) => verdictOf(it) === 'let in' && it.target === 'own')
    expect(cases.length).toBeGreaterThan(0)

    // What is theirs: each asks about a thing of its own, because asking may be the end of it.
    const answers = await inParallel(cases, async (it) =>
      ask(route, it.caller, it.appId, namesThings(route) ? await freshThings(route) : things.own, it.label),
    )
    const statuses = Object.keys(route.answers).map(Number)
    const refused = cases.flatMap((it, i) => {
      const { status, text } = answers[i] as Answer
      return statuses.includes(status) ? [] : [`${describeCase(it)}: ${status} ${text}`]
    })
    expect(refused).toEqual([])
    if (!namesThings(route)) return

    // What is somebody else's, in the name of the own app: as if it were not there.
    const differing = await inParallel(cases, async (it) => {
      const about = (target: Target) => ask(route, it.caller, it.appId, things[target], it.label)
      const missing = await about('missing')
      const found = await Promise.all(strangers(route).map(about))
      const isAlike = found.every((answer) => JSON.stringify(answer) === JSON.stringify(missing))
      return isAlike && missing.status >= 400 && missing.status < 500
        ? []
        : [`${describeCase(it)}: ${[missing, ...found].map(({ status, text }) => `${status} ${text}`).join(' | ')}`]
    })
    expect(differing.flat()).toEqual([])
  })

  /** Not every name stands in the path. */
  test.each<[string, (about: Things) => { method: string; path: string; headers?: object; body: object }]>([
    [
      'a new user with a subscription of theirs',
      ({ subscriptionId }) => ({
        method: 'POST',
        path: '/users',
        body: { identity: { external_id: 'taker' }, subscriptions: [{ id: subscriptionId }] },
      }),
    ],
    [
      'a subscription of theirs for an own user',
      ({ subscriptionId }) => ({
        method: 'POST',
        path: `/users/by/onesignal_id/${things.own.userId}/subscriptions`,
        body: { subscription: { id: subscriptionId } },
      }),
    ],
    [
      'an own subscription for a user of theirs',
      ({ externalId }) => ({
        method: 'PATCH',
        path: `/subscriptions/${things.own.subscriptionId}/owner`,
        body: { identity: { external_id: externalId } },
      }),
    ],
    [
      'an own subscription for a user of theirs, by id',
      ({ userId }) => ({
        method: 'PATCH',
        path: `/subscriptions/${things.own.subscriptionId}/owner`,
        body: { identity: { onesignal_id: userId } },
      }),
    ],
    [
      'a session on a subscription of theirs',
      ({ subscriptionId }) => ({
        method: 'PATCH',
        path: `/users/by/onesignal_id/${things.own.userId}`,
        headers: { 'onesignal-subscription-id': subscriptionId },
        body: { deltas: { session_count: 1 } },
      }),
    ],
  ])('%s is nothing that they have', async (_, make) => {
    const about = async (target: Target) => {
      const { method, path, headers, body } = make(things[target])
      const { status, body: answer } = await server.app(path, { method, headers: { ...headers }, body })
      return { status, answer }
    }
    const missing = await about('missing')
    expect(missing.status).toBeGreaterThanOrEqual(400)
    expect(missing.status).toBeLessThan(500)
    expect([await about('sibling'), await about('foreign')]).toEqual([missing, missing])
  })

  test('and changes nothing that is not theirs', async () => {
    expect(await checksums(server.db, others())).toEqual(before)
  })
})

describe('the matrix', () => {
  test('asks every route of the server', async () => {
    const described = (await (await fetch(`${server.url}/openapi.json`)).json()) as { paths: Record<string, object> }
    const operations = Object.entries(described.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`),
    )
    expect(routes.map(nameOf).sort()).toEqual(operations.sort())
  })

  test('knows of no keyless route that is not there', () => {
    expect(KEYLESS.filter((name) => !routes.some((route) => nameOf(route) === name))).toEqual([])
  })

  test('sees a row that changed', async () => {
    const before = await checksums(server.db, [apps.sibling])
    await server.request(`/apps/${apps.sibling}/users/by/onesignal_id/${things.sibling.userId}`, {
      method: 'PATCH',
      headers: { authorization: `Key ${keys.sibling}` },
      body: { properties: { tags: { seen: 'yes' } } },
    })
    expect(await checksums(server.db, [apps.sibling])).not.toEqual(before)
  })
})
