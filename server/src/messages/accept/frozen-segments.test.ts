// A message goes by the segments as they were when it was accepted.

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { closeRenderer, type FakeSender, fakeSender } from '../../../test/engine.ts'
import { anAppOf } from '../../../test/entry.ts'
import { aToken, messagesOf, saying } from '../../../test/messages.ts'
import { aSegment, tagIs } from '../../../test/segments.ts'
import { aName, aUser } from '../../../test/users.ts'
import { aWorker } from '../../../test/worker.ts'
import { virtualClock } from '../../lib/clock.ts'
import { sql } from '../../storage/sql.ts'

const clock = virtualClock('2030-01-01T09:00:00Z')
let server: TestApp
let app: TestApp
let sender: FakeSender
/** Tokens of those who have the tag level with these values. */
let gold: string
let silver: string
let staff: string
beforeAll(async () => {
  server = await testApp({ clock })
})
afterAll(async () => {
  await server.close()
  await closeRenderer()
})
beforeEach(async () => {
  app = await anAppOf(server)
  sender = fakeSender()
  ;[gold, silver, staff] = (await Promise.all(
    [{ level: 'gold' }, { level: 'silver' }, { level: 'gold', staff: 'yes' }].map(async (tags) => {
      const token = aToken()
      await aUser(app, { properties: { tags }, subscriptions: [{ type: 'AndroidPush', token }] })
      return token
    }),
  )) as [string, string, string]
})

const change = (id: string, body: object) => app.app(`/segments/${id}`, { method: 'PATCH', body })
const remove = (id: string) => app.app(`/segments/${id}`, { method: 'DELETE' })

/** A message to those who have gold and are no staff, in an hour. */
async function scheduled() {
  const [included, excluded] = [aName('gold'), aName('staff')]
  const includedId = await aSegment(app, [tagIs('level', 'gold')], { name: included })
  const excludedId = await aSegment(app, [tagIs('staff', 'yes')], { name: excluded })
  const id = await messagesOf(app).sent(
    saying({ included_segments: [included], excluded_segments: [excluded], send_after: '2030-01-01T10:00:00Z' }),
  )
  return { id, included, excluded, includedId, excludedId }
}

async function sentTo() {
  clock.advance({ ms: Math.max(0, Date.parse('2030-01-01T10:00:00Z') - clock.now().getTime()) })
  await aWorker(app, clock, { sender }).runDue()
  return sender.calls.map(({ outgoing }) => outgoing.token).filter((token) => [gold, silver, staff].includes(token))
}

test('a segment that was edited since', async () => {
  const { includedId, excludedId, included, excluded } = await scheduled()
  expect((await change(includedId, { name: included, filters: [tagIs('level', 'silver')] })).status).toBe(200)
  expect((await change(excludedId, { name: excluded, filters: [tagIs('level', 'gold')] })).status).toBe(200)
  expect(await sentTo()).toEqual([gold])
})

test('a segment that was renamed since, while another has its name now', async () => {
  const { includedId, excludedId, included, excluded, id } = await scheduled()
  await change(includedId, { name: aName('other') })
  await change(excludedId, { name: aName('other') })
  await aSegment(app, [tagIs('level', 'silver')], { name: included })
  await aSegment(app, [tagIs('level', 'gold')], { name: excluded })
  expect(await sentTo()).toEqual([gold])
  expect((await messagesOf(app).view(id)).body).toMatchObject({
    included_segments: [included],
    excluded_segments: [excluded],
  })
})

test('a segment that was deleted since, which is a 200', async () => {
  const { includedId, excludedId } = await scheduled()
  for (const id of [includedId, excludedId])
    expect(await remove(id)).toMatchObject({ status: 200, body: { success: true } })
  expect(await sentTo()).toEqual([gold])
})

test('a segment that filters exclude, deleted since', async () => {
  const excluded = aName('staff')
  const excludedId = await aSegment(app, [tagIs('staff', 'yes')], { name: excluded })
  const filters = [tagIs('level', 'gold')]
  await messagesOf(app).sent(saying({ filters, excluded_segments: [excluded], send_after: '2030-01-01T10:00:00Z' }))
  expect((await remove(excludedId)).status).toBe(200)
  expect(await sentTo()).toEqual([gold])
})

test('who is in it is decided when the message begins to be sent', async () => {
  await scheduled()
  await app.db.query(sql`
    update users set tags = '{"level": "gold"}' where app_id = ${app.tenant.id} and tags ->> 'level' = 'silver'`)
  expect((await sentTo()).sort()).toEqual([gold, silver].sort())
})
