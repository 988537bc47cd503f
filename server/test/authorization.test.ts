// Every route, asked by every kind of caller, about what is theirs, somebody else's, or not there. The routes come from the
// table of routes, so a new one is asked too.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SYSTEM } from '../src/apps/app.ts'
import { createApp, setApp } from '../src/apps/create.ts'
import { issueKey, revokeKey } from '../src/apps/keys/keys.ts'
import { declaredRoutes } from '../src/composition/declared-routes.ts'
import { insertCaught } from '../src/email/mailbox/store.ts'
import { emailIdOf } from '../src/email/reference.ts'
import { suppressAddresses } from '../src/email/suppressions/store.ts'
import { insertWebhook } from '../src/feedback/webhook-store.ts'
import type { Route } from '../src/http/route.ts'
import { insertWebhook as insertJourneyWebhook } from '../src/journeys/webhooks/store.ts'
import { systemClock } from '../src/lib/clock.ts'
import { type AppId, newId } from '../src/lib/ids.ts'
import { type Permission, permissions } from '../src/lib/permissions.ts'
import { newWebhookSecret, secretBox, sha256 } from '../src/lib/secrets.ts'
import { sealedFor } from '../src/lib/webhook-secrets.ts'
import { NO_RUN } from '../src/messages/message.ts'
import { addMonths } from '../src/storage/partitions.ts'
import { sql } from '../src/storage/sql.ts'
import { type TestApp, testApp } from './app.ts'
import { checksums } from './authorization/checksums.ts'
import {
  LINK,
  labelsOf,
  namesThings,
  paramsOf,
  requestFor,
  type Things,
  unknownThings,
} from './authorization/requests.ts'
import {
  type CallerKind,
  type Door,
  isAboutAnApp,
  isSigned,
  judge,
  KEYLESS,
  nameOf,
  type Target,
  told,
} from './authorization/rules.ts'
import { NO_USER_DATA, USER_DATA } from './authorization/user-data.ts'
import { references, referencesOf } from './email-back.ts'

const { domains: domainRoutes, kit } = declaredRoutes()
const routes: Route[] = [...domainRoutes, ...kit]

type Caller = {
  name: string
  kind: CallerKind
  headers: (route: Route) => Record<string, string>
  /** SDKs say nothing of who they are, so an app of others is as open to them as their own. */
  asks?: readonly Target[]
  /** Routes that this caller has a meaning for; all of them by default. */
  isFor?: (route: Route) => boolean
}

const ALL: readonly Target[] = ['own', 'sibling', 'foreign', 'missing']
const SDK = { 'sdk-version': 'onesignal/web/160510', accept: 'application/vnd.onesignal.v1+json' }

let server: TestApp
let callers: Caller[]
let apps: Record<Target, string>
/** Own apps that SDKs cannot come into without more: one is switched off, one asks for proof. */
let closedApps: { id: string; door: Door }[]
let things: Record<Target, Things>
let organizations: Record<string, string>
let organizationKeys: Record<string, string>
let keys: { own: string; sibling: string; foreign: string }
let keyWithoutUsers: string

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
  closedApps = [
    { id: await makeApp({ keylessSdk: false }), door: 'shut' },
    { id: proving, door: 'proving' },
  ]
  organizations = {
    [tenant.id]: tenant.organizationId,
    [sibling]: tenant.organizationId,
    [stranger.id]: stranger.organizationId,
  }
  organizationKeys = {
    [tenant.organizationId]: tenant.organizationKey,
    [stranger.organizationId]: stranger.organizationKey,
  }
  apps = { own: tenant.id, sibling, foreign: stranger.id, missing: newId() }
  keys = { own: tenant.key, sibling: await appKey(sibling), foreign: stranger.key }

  const lacking = new Map<Permission, string>()
  for (const permission of permissions)
    lacking.set(permission, await appKey(tenant.id, { permissions: permissions.filter((it) => it !== permission) }))
  keyWithoutUsers = lacking.get('users') as string
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
    {
      name: 'own key without the second permission',
      kind: 'own without the permission',
      isFor: ({ access }) => access.kind === 'app' && access.also !== undefined,
      headers: ({ access }) => ({
        authorization: `Key ${lacking.get(access.kind === 'app' ? (access.also?.permission ?? 'users') : 'users')}`,
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
    own: await makeThings(apps.own, keys.own, await makeFew(apps.own, keys.own)),
    sibling: await makeThings(apps.sibling, keys.sibling, await makeFew(apps.sibling, keys.sibling)),
    foreign: await makeThings(apps.foreign, keys.foreign, await makeFew(apps.foreign, keys.foreign)),
    missing: unknownThings(),
  }
  // Apps get their pair for web push when they are first looked at; that is no change that a later look makes.
  for (const { organizationKey } of [tenant, stranger])
    await server.request('/apps', { headers: { authorization: `Key ${organizationKey}` } })
})
afterAll(() => server.close())

const PUBLIC_KEY = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEVs/o5+uQbTjL3chynL4wXgUg2R9
q9UU8I5mEovUf86QZ7kOBIjJwqnzD1omageEHWwHdBO6B+dFabmdT9POxg==
-----END PUBLIC KEY-----
`

/** What nobody learns of a user without the permission for it. */
const SECRET_TAG = 'a-tag-that-is-nobody-elses-business'

type AboutEmail = Pick<Things, 'emailDomain' | 'suppressed' | 'mailId'>
type Few = Pick<Things, 'keyId' | 'administratorId' | 'webhookId' | 'journeyId' | 'nodeId' | 'journeyWebhookId'> &
  AboutEmail

async function makeThings(appId: string, key: string, few: Few, state = 'live'): Promise<Things> {
  const externalId = newId()
  const email = `${newId()}@example.com`
  const { status, body } = await server.request(`/apps/${appId}/users`, {
    headers: { authorization: `Key ${key}` },
    body: {
      identity: { external_id: externalId, mark: newId() },
      properties: { tags: { secret: SECRET_TAG } },
      subscriptions: [
        { type: 'iOSPush', token: newId() },
        { type: 'Email', token: email },
      ],
    },
  })
  if (status !== 201) throw new Error(`no user was made: ${JSON.stringify(body)}`)
  const template = await server.request('/templates', {
    headers: { authorization: `Key ${key}` },
    body: { app_id: appId, name: 'A template', contents: { en: 'Hello {{ user | json }}' } },
  })
  if (template.status !== 200) throw new Error(`no template was made: ${JSON.stringify(template.body)}`)
  const segment = await server.request(`/apps/${appId}/segments`, {
    headers: { authorization: `Key ${key}` },
    body: { name: newId(), filters: [{ field: 'country', relation: 'exists' }] },
  })
  if (segment.status !== 201) throw new Error(`no segment was made: ${JSON.stringify(segment.body)}`)
  const inApp = await server.request(`/apps/${appId}/in_app_messages`, {
    headers: { authorization: `Key ${key}` },
    body: { name: newId(), state, contents: { en: { title: 'Hello {{ secret }}' } } },
  })
  if (inApp.status !== 201) throw new Error(`no in-app message was made: ${JSON.stringify(inApp.body)}`)
  const message = await server.request('/notifications', {
    headers: { authorization: `Key ${key}` },
    body: { app_id: appId, contents: { en: 'Hello' }, included_segments: ['Subscribed Users'] },
  })
  if (!message.body.id) throw new Error(`no message was made: ${JSON.stringify(message.body)}`)
  return {
    organizationId: organizations[appId] as string,
    userId: body.identity.onesignal_id,
    externalId,
    subscriptionId: body.subscriptions[0].id,
    email,
    templateId: template.body.id,
    segmentId: segment.body.id,
    exportId: await aFile(appId),
    activityId: await anActivity(appId, key),
    messageId: message.body.id,
    inAppMessageId: inApp.body.id,
    variantId: inApp.body.variants.en,
    ...(await anEmail(appId, message.body.id, body.subscriptions[1].id)),
    ...few,
  }
}

/** Past the limit on how many domains an app may have. */
async function aboutEmail(appId: AppId): Promise<AboutEmail> {
  const [mailId, now] = [newId(), new Date()]
  const [emailDomain, suppressed] = [`${mailId}.example`, `${mailId}@example.com`]
  await server.db.query(sql`
    insert into email_domains (app_id, domain, state, created_at, updated_at)
    values (${appId}, ${emailDomain}, 'pending', ${now}, ${now})`)
  await suppressAddresses(server.db, appId, [{ address: suppressed, reason: 'manual' }], now)
  const mail = {
    fromAddress: suppressed,
    toAddress: suppressed,
    subject: 'Hello',
    messageId: null,
    raw: Buffer.alloc(0),
  }
  await insertCaught(server.db, appId, [{ id: mailId, at: now, ...mail }])
  return { emailDomain, suppressed, mailId }
}

/** Of the message, to the subscription. */
async function anEmail(appId: AppId, messageId: string, subscriptionId: string) {
  const key = { messageId, subscriptionId, runId: NO_RUN }
  const at = new Date()
  await addMonths(server.db, 'deliveries', at, at)
  await server.db.query(sql`
    insert into deliveries (app_id, expand_at, message_id, subscription_id, user_id, platform, line, state, due_at, expires_at,
      provider_ref, settled_at)
    values (${appId}, ${at}, ${messageId}, ${subscriptionId}, ${newId()}, 'Email', 'bulk/email/0', 'sent', ${at}, ${at},
      ${emailIdOf(key)}, ${at})`)
  await server.db.query(sql`
    update messages set email_html = '<p>Hello</p>' where app_id = ${appId} and id = ${messageId}`)
  return { references: referencesOf({ appId, expandAt: at, ...key }), linkSignature: references.sign(appId, LINK) }
}

/** Its id is also what its address is guarded by. */
async function aFile(appId: AppId): Promise<string> {
  const id = newId()
  await server.db.query(sql`
    insert into exports (app_id, id, kind, secret_hash, request, state, requested_at, ended_at)
    values (${appId}, ${id}, 'subscriptions', ${sha256(id)}, '{}', 'ready', ${new Date()}, ${new Date()})`)
  return id
}

/** Shown by a device of somebody. */
async function anActivity(appId: AppId, key: string): Promise<string> {
  const headers = { authorization: `Key ${key}` }
  const body = { identity: { external_id: newId() }, subscriptions: [{ type: 'iOSPush', token: newId() }] }
  const user = await server.request(`/apps/${appId}/users`, { headers, body })
  const id = newId()
  const token = { subscription_id: user.body.subscriptions[0].id, push_token: 'a token' }
  const answer = await server.request(`/apps/${appId}/live_activities/${id}/token`, { headers, body: token })
  if (answer.status !== 200) throw new Error(`no live activity was made: ${JSON.stringify(answer.body)}`)
  return id
}

/** Asked at once, all but one are told to wait. */
const isMadeAlready = ({ tag, operation }: Route, { status, text }: Answer) =>
  (tag === 'Exports' && status === 400 && text.includes('being made already')) ||
  (operation === 'simulateJourney' && status === 409 && text.includes('journey-simulation-running'))

/** Let in, and told that what it asks for takes proof of identity: the user has an external id. */
const isBeyondDevices = ({ operation }: Route, { kind }: Caller, { status, text }: Answer) =>
  operation === 'deleteAlias' && kind === 'sdk' && status === 403 && text.includes('needs an identity token')

async function aKeyId(appId: AppId): Promise<string> {
  const ctx = { db: server.db, clock: systemClock() }
  return (await issueKey(ctx, { kind: 'app', appId }, { name: 'a thing' }, SYSTEM)).keyId
}

async function anAdministratorId(appId: AppId): Promise<string> {
  const added = await server.request(`/apps/${appId}/administrators`, {
    headers: { authorization: `Key ${organizationKeys[organizations[appId] as string]}` },
    body: { email: `${newId()}@example.com` },
  })
  if (added.status !== 201) throw new Error(`nobody was added: ${JSON.stringify(added.body)}`)
  return added.body.id
}

/** Past the limit on how many an app may have. */
async function aWebhookId(appId: AppId): Promise<string> {
  const [id, now] = [newId(), new Date()]
  const secret = sealedFor(secretBox('the secret key of the tests'), 'event_webhooks', appId, id).seal(
    newWebhookSecret(),
  )
  await insertWebhook(server.db, appId, {
    id,
    url: 'https://127.0.0.1/',
    kinds: ['sent'],
    secret,
    createdAt: now,
    updatedAt: now,
  })
  return id
}

const emailOf = ({ emailDomain, suppressed, mailId }: Things): AboutEmail => ({ emailDomain, suppressed, mailId })

/** With one node. */
async function aJourney(appId: AppId, key: string): Promise<Pick<Things, 'journeyId' | 'nodeId'>> {
  const { status, body } = await server.request(`/apps/${appId}/journeys`, {
    headers: { authorization: `Key ${key}` },
    body: {
      name: 'A journey',
      audience: { kind: 'event_trigger', name: 'bell rung' },
      nodes: [{ kind: 'wait', duration_seconds: 60 }],
    },
  })
  if (status !== 201) throw new Error(`no journey was made: ${JSON.stringify(body)}`)
  // Only into an active one can somebody be let in.
  await server.db.query(sql`
    update journeys set state = 'active', started_at = created_at where app_id = ${appId} and id = ${body.id}`)
  return { journeyId: body.id, nodeId: body.nodes[0].id }
}

/** Past the limit on how many an app may have. */
async function aJourneyWebhookId(appId: AppId): Promise<string> {
  const [id, now] = [newId(), new Date()]
  const secret = sealedFor(secretBox('the secret key of the tests'), 'journey_webhooks', appId, id).seal(
    newWebhookSecret(),
  )
  const rest = { previousSecret: null, previousUntil: null, createdAt: now, updatedAt: now }
  await insertJourneyWebhook(server.db, appId, { id, name: 'A webhook', url: 'https://127.0.0.1/', secret, ...rest })
  return id
}

const makeFew = async (appId: AppId, key: string): Promise<Few> => ({
  ...(await aJourney(appId, key)),
  journeyWebhookId: await aJourneyWebhookId(appId),
  keyId: await aKeyId(appId),
  administratorId: await anAdministratorId(appId),
  webhookId: await aWebhookId(appId),
  ...(await aboutEmail(appId)),
})

const journeyOf = ({ journeyId, nodeId }: Things) => ({ journeyId, nodeId })

/** Of the own app. It may have 16 keys, 50 administrators, 100 live in-app messages: new ones are made for routes that name one. */
const freshThings = async ({ path }: Route) => {
  const few = {
    keyId: path.includes(':token_id') ? await aKeyId(apps.own) : things.own.keyId,
    administratorId: path.includes(':administrator_id')
      ? await anAdministratorId(apps.own)
      : things.own.administratorId,
    webhookId: path.includes(':webhook_id') ? await aWebhookId(apps.own) : things.own.webhookId,
    ...(path.includes(':journey_id') ? await aJourney(apps.own, keys.own) : journeyOf(things.own)),
    journeyWebhookId: path.includes(':journey_webhook_id')
      ? await aJourneyWebhookId(apps.own)
      : things.own.journeyWebhookId,
    ...(/:(domain|address|mail_id)/.test(path) ? await aboutEmail(apps.own) : emailOf(things.own)),
  }
  return makeThings(apps.own, keys.own, few, path.includes(':variant_id') ? 'live' : 'draft')
}

type Answer = { status: number; text: string; type: string | null }

async function ask(route: Route, caller: Caller, appId: string, about: Things, label: string): Promise<Answer> {
  const { method, path, headers, body } = requestFor(route, appId, about, label)
  const isForm = route.isForm || route.isRaw
  const response = await fetch(`${server.url}${path}`, {
    method,
    // Where a redirect is the answer it is not followed.
    redirect: route.answers[302] ? 'manual' : 'follow',
    headers: {
      ...caller.headers(route),
      ...headers,
      ...(body && { 'content-type': isForm ? 'application/x-www-form-urlencoded' : 'application/json' }),
    },
    ...(body && { body: isForm ? 'Body=STOP&email=unsubscribed' : JSON.stringify(body) }),
  })
  return { status: response.status, text: await response.text(), type: response.headers.get('content-type') }
}

type Case = { route: Route; caller: Caller; target: Target; label: string; door: Door; appId: string }

const verdictOf = ({ route, caller, target, label, door, appId }: Case) =>
  judge(route, caller.kind, target, paramsOf(route, appId, things[target], label), door)

function casesOf(route: Route): Case[] {
  const hasTargets = isAboutAnApp(route) || route.path.includes(':organization_id')
  const askers = callers.filter(({ isFor = () => true }) => isFor(route))
  return askers.flatMap((caller) =>
    labelsOf(route).flatMap((label) => [
      ...(hasTargets ? (caller.asks ?? ALL) : (['own'] as const)).map((target) => ({
        route,
        caller,
        target,
        label,
        door: 'open' as const,
        appId: apps[target],
      })),
      ...(caller.kind === 'sdk' && isAboutAnApp(route)
        ? closedApps.map(({ id: appId, door }) => ({ route, caller, target: 'own' as const, label, door, appId }))
        : []),
    ]),
  )
}

/** Whose things are not the caller's: a sibling app's are, where it is the organization that is named. */
const strangers = ({ path }: Route): Target[] =>
  path.includes(':organization_id') ? ['foreign'] : ['sibling', 'foreign']

const describeCase = ({ caller, target, label, appId }: Case) =>
  `${caller.name} -> ${closedApps.find(({ id }) => id === appId)?.door ?? target} app by ${label}`

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

const everybody = () => Object.values(apps).concat(closedApps.map(({ id }) => id))

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
    const cases = casesOf(route).filter(
      (it) => verdictOf(it) === 'let in' && it.target === 'own' && it.appId === apps.own,
    )
    expect(cases.length > 0).toBe(!isSigned(route))

    // What is theirs: each asks about a thing of its own, because asking may be the end of it.
    const answers = await inParallel(cases, async (it) =>
      ask(route, it.caller, it.appId, namesThings(route) ? await freshThings(route) : things.own, it.label),
    )
    const statuses = Object.keys(route.answers).map(Number)
    const refused = cases.flatMap((it, i) => {
      const answer = answers[i] as Answer
      const isServed =
        statuses.includes(answer.status) || isMadeAlready(route, answer) || isBeyondDevices(route, it.caller, answer)
      return isServed ? [] : [`${describeCase(it)}: ${answer.status} ${answer.text}`]
    })
    expect(refused).toEqual([])
    if (!namesThings(route)) return

    // What is somebody else's, in the name of the own app: as if it were not there.
    const differing = await inParallel(cases, async (it) => {
      const about = (target: Target) => ask(route, it.caller, it.appId, things[target], it.label)
      const missing = await about('missing')
      const found = await Promise.all(strangers(route).map(about))
      const isAlike = found.every((answer) => JSON.stringify(answer) === JSON.stringify(missing))
      // What anybody may call has no own and foreign: it answers what is there as it answers what is not.
      const isRefused = route.access.kind === 'public' || (missing.status >= 400 && missing.status < 500)
      return isAlike && isRefused
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

describe('a key without the permission "users"', () => {
  const appRoutes = routes.flatMap((route) => (route.access.kind === 'app' ? [{ route, access: route.access }] : []))

  test('is refused by every operation whose answer holds what is known of users', () => {
    const declared = appRoutes.map(({ route: { operation }, access: { permission, also } }) => {
      const shown = USER_DATA[operation]
      const needs = also ? [permission, also.permission] : [permission]
      return [operation, shown && { needs, ...(also?.when && { only: also.when.reason }) }] as const
    })
    const stated = Object.entries(USER_DATA).map(([name, { needs, only }]) => [name, { needs, ...(only && { only }) }])
    expect(Object.fromEntries(declared.filter(([, shown]) => shown))).toEqual(Object.fromEntries(stated))
  })

  test('has every operation of apps judged by what its answer holds', () => {
    const judged = [...Object.keys(USER_DATA), ...NO_USER_DATA]
    expect(appRoutes.map(({ route }) => route.operation).sort()).toEqual(judged.sort())
  })

  test('is shown neither tags nor addresses by any other', async () => {
    const caller: Caller = {
      name: 'own key without users',
      kind: 'own',
      headers: () => ({ authorization: `Key ${keyWithoutUsers}` }),
    }
    const others = appRoutes.filter(
      ({ access: { permission, also } }) => ![permission, also?.permission].includes('users'),
    )
    expect(others.length).toBeGreaterThan(80)
    const told = await inParallel(others, async ({ route }) => {
      const about = namesThings(route) ? await freshThings(route) : things.own
      const { status, text } = await ask(route, caller, apps.own, about, 'onesignal_id')
      const isTold = [SECRET_TAG, about.email, about.suppressed].some((secret) => text.includes(secret))
      return isTold ? [`${route.operation}: ${status} ${text}`] : []
    })
    expect(told.flat()).toEqual([])
  })

  test('previews without a user, and is told what is missing with one', async () => {
    const headers = { authorization: `Key ${keyWithoutUsers}` }
    const body = { app_id: apps.own, contents: { en: 'Hello {{ secret | default: "you" }}, {{ user | json }}' } }
    const nobody = await server.request('/templates/preview', { headers, body })
    expect(nobody).toMatchObject({ status: 200, body: { language: 'en' } })
    expect(nobody.body.rendered.contents).toMatch(/^Hello you, \{"tags":\{\},"external_id":null,"onesignal_id":null/)
    const somebody = { alias_label: 'external_id', alias_id: things.own.externalId }
    const refused = { status: 403, body: { errors: [MISSING] } }
    expect(await server.request('/templates/preview', { headers, body: { ...body, ...somebody } })).toMatchObject(
      refused,
    )
    const stored = `/templates/${things.own.templateId}/preview?app_id=${apps.own}`
    expect(await server.request(stored, { headers, body: somebody })).toMatchObject(refused)
    expect(await server.request(stored, { headers, body: {} })).toMatchObject({ status: 200 })
    expect(await server.request(stored, { headers, body: { alias_id: 'x' } })).toMatchObject(refused)
  })
})

const MISSING = 'This key does not have the permission "users", which a preview as a user needs'

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
