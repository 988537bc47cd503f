// Makers for tests about journeys.

import type { Answer, Request, TestApp } from './app.ts'
import { anInApp } from './in-app.ts'
import { aSegment, tagIs } from './segments.ts'
import { anEmailTemplate, anSms, aPush, templatesOf } from './templates.ts'
import { aName } from './users.ts'

type Fields = Record<string, unknown>

export const create = (app: TestApp, fields: Fields = {}, request: Request = {}): Promise<Answer> =>
  app.app('/journeys', { body: { name: aName('journey'), ...fields }, ...request })
export const view = (app: TestApp, id: string): Promise<Answer> => app.app(`/journeys/${id}`)
export const update = (app: TestApp, id: string, body: Fields): Promise<Answer> =>
  app.app(`/journeys/${id}`, { method: 'PATCH', body })
export const updateNode = (app: TestApp, id: string, nodeId: string, body: Fields): Promise<Answer> =>
  app.app(`/journeys/${id}/nodes/${nodeId}`, { method: 'PATCH', body })
export const remove = (app: TestApp, id: string): Promise<Answer> => app.app(`/journeys/${id}`, { method: 'DELETE' })

/** As it was answered. */
export async function aJourney(app: TestApp, fields: Fields = {}): Promise<Answer['body']> {
  const { status, body } = await create(app, fields)
  if (status !== 201) throw new Error(`no journey: ${status} ${JSON.stringify(body)}`)
  return body
}

export const aWait = (fields: Fields = {}) => ({ kind: 'wait', duration_seconds: 3600, ...fields })

/** What a journey needs before it can be activated. */
export async function readyFields(app: TestApp): Promise<Fields & { segmentId: string }> {
  const segmentId = await aSegment(app, [tagIs('plan', aName('plan'))])
  return { segmentId, audience: { kind: 'segment', included_segment_ids: [segmentId] }, nodes: [aWait()] }
}

/** A journey that can be activated. */
export async function aReadyJourney(app: TestApp, fields: Fields = {}) {
  const { segmentId, ...ready } = await readyFields(app)
  return { ...(await aJourney(app, { ...ready, ...fields })), segmentId }
}

/** One thing of each kind that nodes refer to. */
export async function someReferences(app: TestApp) {
  const template = async (fields: Fields) => (await templatesOf(app).create(fields)).body.id as string
  const webhook = await app.app('/journey_webhooks', { body: { name: 'Shop', url: 'https://example.com/hook' } })
  return {
    segmentId: await aSegment(app, [tagIs('plan', aName('plan'))]),
    pushId: await template(aPush()),
    emailId: await template(anEmailTemplate()),
    smsId: await template(anSms()),
    iamId: (await anInApp(app)).id as string,
    webhookId: webhook.body.id as string,
  }
}

export type References = Awaited<ReturnType<typeof someReferences>>

/** One node of each of the eleven kinds, in the fullest form that is answered back as it was given. */
export const everyKind = (it: References) => [
  aWait({ client_node_id: 'first', annotation: 'A pause' }),
  {
    kind: 'time_window',
    relative_to: 'schedule_in_timezone',
    windows: [
      { start: { hour: 9, minute: 0 }, end: { hour: 17, minute: 30 }, day_of_week: 1 },
      { start: { hour: 22, minute: 0 }, end: { hour: 2, minute: 0 } },
    ],
    time_zone: 'Europe/Berlin',
    use_user_time_zone: true,
  },
  { kind: 'send_push', template_id: it.pushId, client_node_id: 'hello' },
  { kind: 'send_email', template_id: it.emailId },
  { kind: 'send_sms', template_id: it.smsId },
  { kind: 'send_iam', iam_id: it.iamId, user_ttl_seconds: 60 },
  { kind: 'send_webhook', webhook_id: it.webhookId },
  { kind: 'tag', assignments: { seen: '{{ first_name }}', old: '' } },
  {
    kind: 'split_range',
    randomize_on_entry: true,
    branches: [
      { weight: 30, nodes: [aWait()] },
      { weight: 70, nodes: [] },
    ],
  },
  {
    kind: 'yes_no',
    branches: [
      {
        condition: {
          kind: 'segment_membership',
          included_segment_ids: [it.segmentId],
          excluded_segment_ids: [],
        },
        nodes: [aWait()],
      },
      { nodes: [] },
    ],
  },
  {
    kind: 'wait_until',
    branches: [
      {
        condition: {
          kind: 'event_trigger',
          name: 'bought',
          attributes: [[{ key: 'price', operator: 'greater', value: '10' }]],
          entry_event_match_attributes: [],
        },
        nodes: [],
      },
    ],
    expiration: { duration_seconds: 86400, exits: true },
  },
]

/** Titles of the problems of a refused request. */
export const titles = ({ body }: Answer): string[] => body.errors.map(({ title }: { title: string }) => title)
export const codes = ({ body }: Answer): string[] => body.errors.map(({ code }: { code: string }) => code)

export const JOURNEY_NOT_FOUND = {
  status: 404,
  body: { errors: [{ code: 'journey-not-found', title: 'Journey not found' }] },
}
