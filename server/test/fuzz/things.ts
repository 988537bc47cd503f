// One thing of each kind that requests can make, for requests that are to get as far as possible.

import { newId } from '../../src/lib/ids.ts'
import { type Things, unknownThings } from '../authorization/requests.ts'
import { ask } from './ask.ts'
import type { FuzzedServer } from './server.ts'

export async function makeThings({ url, keys }: FuzzedServer): Promise<Things> {
  const make = async (path: string, body: object) => {
    const headers = { authorization: `Key ${keys.appKey}`, 'content-type': 'application/json' }
    const { status, text } = await ask(url, { method: 'POST', path, headers, body: Buffer.from(JSON.stringify(body)) })
    if (status < 200 || status > 299) throw new Error(`POST ${path} was answered with ${status}: ${text}`)
    return JSON.parse(text)
  }
  const app = `/apps/${keys.appId}`
  const [externalId, email] = [newId(), `${newId()}@example.com`]
  const user = await make(`${app}/users`, {
    identity: { external_id: externalId, mark: newId() },
    subscriptions: [{ type: 'Email', token: email }],
  })
  const filters = [{ field: 'country', relation: 'exists' }]
  const segment = await make(`${app}/segments`, { name: newId(), filters })
  const content = { app_id: keys.appId, contents: { en: 'Hello' } }
  const template = await make('/templates', { ...content, name: 'A template' })
  const message = await make('/notifications', {
    ...content,
    included_segments: ['Subscribed Users'],
    send_after: '2099-01-01T00:00:00Z',
  })
  const inApp = await make(`${app}/in_app_messages`, {
    name: newId(),
    state: 'live',
    contents: { en: { title: 'Hi' } },
  })
  const journey = await make(`${app}/journeys`, {
    name: 'A journey',
    audience: { kind: 'event_trigger', name: 'bell rung' },
    nodes: [{ kind: 'wait', duration_seconds: 60 }],
  })
  return {
    ...unknownThings(),
    organizationId: keys.organizationId,
    userId: user.identity.onesignal_id,
    externalId,
    subscriptionId: user.subscriptions[0].id,
    email,
    segmentId: segment.id,
    templateId: template.id,
    messageId: message.id,
    inAppMessageId: inApp.id,
    variantId: inApp.variants.en,
    journeyId: journey.id,
    nodeId: journey.nodes[0].id,
  }
}
