// Makers for tests about in-app messages.

import type { Answer, Request, TestApp } from './app.ts'
import { aName, aUser, type MadeUser } from './users.ts'

type Fields = Record<string, unknown>

/** As SDKs come: with these headers and without a key. */
export const ANDROID = {
  authorization: '',
  'sdk-version': 'onesignal/android/050909',
  accept: 'application/vnd.onesignal.v1+json',
}
export const IOS = { ...ANDROID, 'sdk-version': 'onesignal/ios/050212' }

export const someContents = { en: { title: 'Hello' } }

export const createInApp = (app: TestApp, fields: Fields = {}, request: Request = {}): Promise<Answer> =>
  app.app('/in_app_messages', { body: { name: aName('in-app'), contents: someContents, ...fields }, ...request })

/** Live unless told otherwise; as it was answered. */
export async function anInApp(app: TestApp, fields: Fields = {}) {
  const answer = await createInApp(app, { state: 'live', ...fields })
  if (answer.status !== 201) throw new Error(`no in-app message: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body
}

export const viewInApp = async (app: TestApp, id: string) => (await app.app(`/in_app_messages/${id}`)).body
export const updateInApp = (app: TestApp, id: string, body: Fields): Promise<Answer> =>
  app.app(`/in_app_messages/${id}`, { method: 'PATCH', body })
export const deleteInApp = (app: TestApp, id: string): Promise<Answer> =>
  app.app(`/in_app_messages/${id}`, { method: 'DELETE' })

export type Device = MadeUser & { subscriptionId: string }

/** Somebody with one device. */
export async function aDevice(app: TestApp, { type = 'AndroidPush', tags = {} } = {}): Promise<Device> {
  const user = await aUser(app, { properties: { tags }, subscriptions: [{ type, token: aName('token') }] })
  return { ...user, subscriptionId: user.subscriptionIds[0] as string }
}

/** What the device is told to show. Asked with a key unless told: SDKs without one are counted by the second. */
export const fetchFor = (app: TestApp, { subscriptionId }: { subscriptionId: string }, headers: object = {}) =>
  app.app(`/subscriptions/${subscriptionId}/iams`, { headers: { ...headers } })

/** The ids of those. */
export async function shownTo(app: TestApp, device: { subscriptionId: string }): Promise<string[]> {
  const { status, body } = await fetchFor(app, device)
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`)
  return body.in_app_messages.map(({ id }: { id: string }) => id)
}

export const fetchHtml = (app: TestApp, id: string, variantId: string, headers: object = {}) =>
  app.request(`/in_app_messages/${id}/variants/${variantId}/html?app_id=${app.tenant.id}`, { headers: { ...headers } })

export const report = (
  app: TestApp,
  id: string,
  what: 'impression' | 'click' | 'pageImpression',
  body: Fields,
  headers: object = {},
) =>
  app.request(`/in_app_messages/${id}/${what}`, { headers: { ...headers }, body: { app_id: app.tenant.id, ...body } })

export const refused = (...errors: unknown[]) => ({ status: 400, body: { errors } })
export const IN_APP_NOT_FOUND = { status: 404, body: { errors: ['in-app message not found'] } }
