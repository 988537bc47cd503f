// What an active journey uses cannot be taken away from under it.

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { runJobs } from '../../test/events.ts'
import { deleteInApp, updateInApp } from '../../test/in-app.ts'
import { aJourney, aReadyJourney, aWait, someReferences, update, view } from '../../test/journeys.ts'
import { aSegment, refused, tagIs } from '../../test/segments.ts'
import { aPush, templatesOf } from '../../test/templates.ts'
import { aName, told } from '../../test/users.ts'
import { virtualClock } from '../lib/clock.ts'

let app: TestApp
const clock = virtualClock('2030-01-01T09:00:00Z')
beforeAll(async () => {
  app = await testApp({ clock })
})
afterAll(() => app.close())

const segment = (id: string, request: object) => app.app(`/segments/${id}`, request)
const deleteSegment = (id: string) => segment(id, { method: 'DELETE' })
const activate = async (id: string) => {
  expect((await update(app, id, { state: 'active' })).body.state).toBe('processing')
  await runJobs(app, clock)
}
const USED = refused(400, 'Segment is used by an active journey.')

describe('a segment', () => {
  test('of a draft or a scheduled journey can be edited and deleted', async () => {
    const start_at = new Date(clock.now().getTime() + 3_600_000).toISOString()
    const { id, segmentId } = await aReadyJourney(app, { schedule: { start_at } })
    await update(app, id, { state: 'scheduled' })
    const body = { name: aName('segment'), filters: [tagIs('a', 'b')] }
    expect((await segment(segmentId, { method: 'PATCH', body })).status).toBe(200)
    expect(told(await deleteSegment(segmentId))).toEqual({ status: 200, body: { success: true } })
  })

  test('of an active journey can be neither edited nor deleted, until the journey is archived', async () => {
    const { id, segmentId } = await aReadyJourney(app)
    await activate(id)
    expect(told(await deleteSegment(segmentId))).toEqual(USED)
    const body = { name: aName('segment'), filters: [tagIs('a', 'b')] }
    expect(told(await segment(segmentId, { method: 'PATCH', body }))).toEqual(USED)
    expect((await segment(segmentId, {})).status).toBe(200)
    await update(app, id, { state: 'archived' })
    expect(told(await deleteSegment(segmentId))).toEqual({ status: 200, body: { success: true } })
    expect(told(await deleteSegment(segmentId))).toEqual({ status: 404, body: { success: false } })
  })

  test('is in use while the journey is processing, and no more when that is taken back', async () => {
    const { id, segmentId } = await aReadyJourney(app)
    await update(app, id, { state: 'active' })
    expect(told(await deleteSegment(segmentId))).toEqual(USED)
    await update(app, id, { state: 'draft' })
    expect((await deleteSegment(segmentId)).status).toBe(200)
  })

  test('counts as used wherever the journey names it, and not any more once an edit drops it', async () => {
    const [excluded, exit, condition] = await Promise.all([1, 2, 3].map(() => aSegment(app, [tagIs('a', 'b')])))
    const { id, audience } = await aReadyJourney(app)
    const member = { kind: 'segment_membership', included_segment_ids: [condition] }
    await update(app, id, {
      audience: { ...audience, excluded_segment_ids: [excluded] },
      early_exit: { rules: { on_segment: { included_segment_ids: [exit] } } },
      nodes: [{ kind: 'yes_no', branches: [{ condition: member, nodes: [] }, { nodes: [] }] }],
    })
    await activate(id)
    for (const it of [excluded, exit, condition]) expect(told(await deleteSegment(it as string))).toEqual(USED)
    await update(app, id, { early_exit: null, nodes: [aWait()] })
    for (const it of [exit, condition]) expect((await deleteSegment(it as string)).status).toBe(200)
    expect(told(await deleteSegment(excluded as string))).toEqual(USED)
  })

  test('that is deleted while a journey is activated: one of the two is refused', async () => {
    const outcomes = new Set<string>()
    for (let n = 0; n < 10; n++) {
      const { id, segmentId } = await aReadyJourney(app)
      const [started, deleted] = await Promise.all([update(app, id, { state: 'active' }), deleteSegment(segmentId)])
      outcomes.add(`${started.status} ${deleted.status}`)
    }
    for (const outcome of outcomes) expect(['200 400', '422 200']).toContain(outcome)
  })
})

describe('a template', () => {
  test('that an active journey sends cannot be deleted, nor become one of another channel; its content can change', async () => {
    const templates = templatesOf(app)
    const it = await someReferences(app)
    const { id } = await aReadyJourney(app, { nodes: [{ kind: 'send_push', template_id: it.pushId }] })
    await activate(id)
    const inUse = { status: 400, body: { errors: ['Template is used by an active journey.'] } }
    expect(told(await templates.remove(it.pushId))).toEqual(inUse)
    const asEmail = { isEmail: true, email_subject: 'Hi', email_body: '<p>x</p>' }
    expect(told(await templates.update(it.pushId, asEmail))).toEqual(inUse)
    expect((await templates.view(it.pushId)).body.channel).toBe('push')
    expect((await templates.update(it.pushId, { contents: { en: 'New' } })).status).toBe(200)
    await update(app, id, { state: 'archived' })
    expect((await templates.update(it.pushId, asEmail)).status).toBe(200)
    expect((await templates.remove(it.pushId)).status).toBe(200)
  })

  test('of a draft can be deleted', async () => {
    const templates = templatesOf(app)
    const { id: template_id } = (await templates.create(aPush())).body
    const { id } = await aJourney(app, { nodes: [{ kind: 'send_push', template_id }] })
    expect((await templates.remove(template_id)).status).toBe(200)
    expect((await view(app, id)).body.nodes[0].template_id).toBe(template_id)
  })
})

test('an in-app message that an active journey sends cannot be deleted, but paused or archived', async () => {
  const it = await someReferences(app)
  const { id } = await aReadyJourney(app, { nodes: [{ kind: 'send_iam', iam_id: it.iamId }] })
  await activate(id)
  expect(told(await deleteInApp(app, it.iamId))).toEqual({
    status: 400,
    body: { errors: ['In-app message is used by an active journey.'] },
  })
  expect((await updateInApp(app, it.iamId, { state: 'paused' })).status).toBe(200)
  await update(app, id, { state: 'archived' })
  expect((await deleteInApp(app, it.iamId)).status).toBe(200)
})

test('a journey webhook that an active journey calls cannot be deleted, but changed', async () => {
  const it = await someReferences(app)
  const { id } = await aReadyJourney(app, { nodes: [{ kind: 'send_webhook', webhook_id: it.webhookId }] })
  await activate(id)
  const webhook = (request: object) => app.app(`/journey_webhooks/${it.webhookId}`, request)
  expect(told(await webhook({ method: 'DELETE' }))).toEqual({
    status: 400,
    body: { errors: [{ code: 'request-0', title: 'Webhook is used by an active journey.' }] },
  })
  expect((await webhook({ method: 'PATCH', body: { url: 'https://example.com/new' } })).status).toBe(200)
  await app.app(`/journeys/${id}`, { method: 'DELETE' })
  expect((await webhook({ method: 'DELETE' })).status).toBe(200)
})
