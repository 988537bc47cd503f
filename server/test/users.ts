// Makers for tests about users: each call makes somebody new, so that tests of one file share a server without meeting.

import { expect } from 'vitest'
import type { Answer, TestApp } from './app.ts'

let made = 0
/** A name nobody has yet. */
export const aName = (word = 'somebody') => `${word}-${++made}`
export const anEmail = () => `${aName('mail')}@example.com`
export const aPhone = () => `+1555${String(1_000_000 + ++made)}`

export const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
export const anId = () => expect.stringMatching(UUID_V4)

type Draft = { type?: string; token?: string; id?: string } & Record<string, unknown>
type CreateBody = {
  identity?: Record<string, string>
  properties?: Record<string, unknown>
  subscriptions?: Draft[]
}

export type MadeUser = { id: string; externalId: string; path: string; subscriptionIds: string[] }

/** A user with an external id of its own, made through the interface. */
export async function aUser(app: TestApp, body: CreateBody = {}): Promise<MadeUser> {
  const externalId = body.identity?.external_id ?? aName()
  const answer = await app.app('/users', { body: { ...body, identity: { external_id: externalId, ...body.identity } } })
  if (answer.status !== 201) throw new Error(`no new user: ${answer.status} ${JSON.stringify(answer.body)}`)
  return asMade(answer, externalId)
}

/** A user that nobody has named: one subscription, no external id. */
export async function aNamelessUser(app: TestApp, subscription: Draft = { type: 'Email', token: anEmail() }) {
  const answer = await app.app('/users', { body: { subscriptions: [subscription] } })
  if (answer.status !== 201) throw new Error(`no new user: ${answer.status} ${JSON.stringify(answer.body)}`)
  return asMade(answer, '')
}

const asMade = ({ body }: Answer, externalId: string): MadeUser => ({
  id: body.identity.onesignal_id,
  externalId,
  path: `/users/by/onesignal_id/${body.identity.onesignal_id}`,
  subscriptionIds: body.subscriptions.map(({ id }: { id: string }) => id),
})

export const view = async (app: TestApp, user: { path: string }) => (await app.app(user.path)).body

/** A subscription as it is answered when nothing but its type and token was given. */
export const plainSubscription = (app: TestApp, fields: { type: string; token: string } & Record<string, unknown>) => ({
  id: anId(),
  app_id: app.tenant.id,
  enabled: true,
  notification_types: 1,
  session_time: 0,
  session_count: 0,
  sdk: '',
  device_model: '',
  device_os: '',
  rooted: false,
  test_type: 0,
  app_version: '',
  net_type: 0,
  carrier: '',
  web_auth: '',
  web_p256: '',
  ...fields,
})

export const problem = (status: number, code: string, title: string | RegExp, meta?: Record<string, unknown>) => ({
  status,
  body: {
    errors: [
      {
        code,
        title: typeof title === 'string' ? title : expect.stringMatching(title),
        ...(meta && { meta }),
      },
    ],
  },
})

/** Status and body alone, to be compared exactly. */
export const told = ({ status, body }: Answer) => ({ status, body })

export const USER_NOT_FOUND = problem(404, 'user-0', 'User not found')
export const SUBSCRIPTION_NOT_FOUND = problem(404, 'subscription-0', 'Subscription not found')
export const NOBODY = '00000000-0000-4000-8000-00000000dead'
