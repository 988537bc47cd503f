// Conditions about messages, through what devices and mail programs really tell of them.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { references, writeReference } from '../../../test/email-back.ts'
import { closeRenderer } from '../../../test/engine.ts'
import { record } from '../../../test/events.ts'
import { aReadyJourney, aWait, someReferences, update } from '../../../test/journeys.ts'
import { aName, anEmail, aUser, type MadeUser, view as viewUser } from '../../../test/users.ts'
import { aWorker } from '../../../test/worker.ts'
import { virtualClock } from '../../lib/clock.ts'
import { sql } from '../../storage/sql.ts'

const clock = virtualClock('2030-01-01T09:00:00Z')
let app: TestApp
let templates: Awaited<ReturnType<typeof someReferences>>
beforeAll(async () => {
  app = await testApp({ clock })
  templates = await someReferences(app)
})
afterAll(async () => {
  await app.close()
  await closeRenderer()
})

const work = () => aWorker(app, clock).runDue()
const mark = (name: string) => ({ kind: 'tag', assignments: { [name]: 'yes' } })
const about = (action: string) => ({ kind: 'on_notification_action', action, client_node_id: 'hello' })

/** A journey that sends, with what follows; who does what it is called enters. */
async function aLive(channel: 'push' | 'email', nodes: object[]) {
  const name = aName('came in')
  const template_id = channel === 'push' ? templates.pushId : templates.emailId
  const journey = await aReadyJourney(app, {
    audience: { kind: 'event_trigger', name },
    nodes: [{ kind: `send_${channel}`, template_id, client_node_id: 'hello' }, ...nodes],
  })
  expect((await update(app, journey.id, { state: 'active' })).status).toBe(200)
  await work()
  return { id: journey.id as string, name }
}

const until = (action: string) => ({
  kind: 'wait_until',
  branches: [{ condition: about(action), nodes: [mark(action)] }],
  expiration: { duration_seconds: 600, exits: true },
})

const somebody = () =>
  aUser(app, {
    subscriptions: [
      { type: 'AndroidPush', token: aName('token') },
      { type: 'Email', token: anEmail() },
    ],
  })

const enter = async ({ name }: { name: string }, users: readonly MadeUser[]) => {
  await record(
    app,
    users.map(({ externalId }) => ({ name, external_id: externalId })),
  )
  await work()
}

const later = async (seconds: number) => {
  clock.advance({ seconds })
  await work()
}

const tags = async (user: MadeUser) => (await viewUser(app, user)).properties.tags

type Delivery = { expandAt: Date; messageId: string; subscriptionId: string; runId: string }
async function deliveryTo(user: MadeUser): Promise<Delivery> {
  const [found] = await app.db.query<Delivery>(sql`
    select expand_at, message_id, subscription_id, run_id from deliveries
    where app_id = ${app.tenant.id} and user_id = ${user.id} and state = 'sent' order by due_at desc limit 1`)
  return found as Delivery
}

const player = ({ subscriptionId }: Delivery) => ({ app_id: app.tenant.id, player_id: subscriptionId })
const tell: Record<string, (delivery: Delivery) => Promise<{ status: number }>> = {
  received: (it) => app.request(`/notifications/${it.messageId}/report_received`, { method: 'PUT', body: player(it) }),
  clicked: (it) =>
    app.request(`/notifications/${it.messageId}`, { method: 'PUT', body: { ...player(it), opened: true } }),
  'opened by mail': (it) =>
    fetch(`${app.url}/e/o/${writeReference({ appId: app.tenant.id, ...it }, 'open')}.gif`, { redirect: 'manual' }),
  'clicked by mail': (it) => {
    const [reference, url] = [writeReference({ appId: app.tenant.id, ...it }, 'click'), 'https://shop.example/']
    const path = `/e/c/${reference}/${references.sign(app.tenant.id, url)}?u=${encodeURIComponent(url)}`
    return fetch(`${app.url}${path}`, { redirect: 'manual' })
  },
}

async function tellOf(user: MadeUser, what: string) {
  const answer = await tell[what]?.(await deliveryTo(user))
  expect(answer?.status).toBeLessThan(400)
  await work()
}

describe.each([
  ['push', 'received', 'received', undefined],
  ['push', 'received', 'clicked', undefined],
  ['push', 'opened', 'clicked', 'received'],
  ['push', 'clicked', 'clicked', 'received'],
  ['email', 'opened', 'opened by mail', undefined],
  ['email', 'opened', 'clicked by mail', undefined],
  ['email', 'clicked', 'clicked by mail', 'opened by mail'],
] as const)('%s that was %s', (channel, action, told, tooLittle) => {
  test(`leads on when it was ${told}`, async () => {
    const journey = await aLive(channel, [until(action)])
    const users = [await somebody(), await somebody()] as const
    await enter(journey, users)
    if (tooLittle) for (const user of users) await tellOf(user, tooLittle)
    await later(60)
    expect(await Promise.all(users.map(tags))).toEqual([{}, {}])
    await tellOf(users[0], told)
    expect(await Promise.all(users.map(tags))).toEqual([{ [action]: 'yes' }, {}])
    await later(600)
    expect(await Promise.all(users.map(tags))).toEqual([{ [action]: 'yes' }, {}])
    expect((await app.app(`/journeys/${journey.id}/stats`)).body).toMatchObject({ completed: 1, exited_early: 1 })
  })
})

describe('what was done counts', () => {
  const asks = [
    aWait(),
    { kind: 'yes_no', branches: [{ condition: about('clicked'), nodes: [mark('yes')] }, { nodes: [mark('no')] }] },
  ]

  test('also when the subscription is gone since', async () => {
    const user = await somebody()
    await enter(await aLive('push', asks), [user])
    await tellOf(user, 'clicked')
    const { subscriptionId } = await deliveryTo(user)
    expect((await app.app(`/subscriptions/${subscriptionId}`, { method: 'DELETE' })).status).toBe(202)
    await later(3_600)
    expect(await tags(user)).toEqual({ yes: 'yes' })
  })

  test('for whom it was sent to, also when the subscription is somebody else’s since', async () => {
    const [user, other] = [await somebody(), await somebody()]
    await enter(await aLive('push', asks), [user, other])
    await tellOf(user, 'clicked')
    const { subscriptionId } = await deliveryTo(user)
    const owner = { identity: { external_id: other.externalId } }
    const moved = await app.app(`/subscriptions/${subscriptionId}/owner`, { method: 'PATCH', body: owner })
    expect(moved.status).toBe(200)
    await later(3_600)
    expect(await tags(user)).toEqual({ yes: 'yes' })
    expect(await tags(other)).toEqual({ no: 'yes' })
  })
})
