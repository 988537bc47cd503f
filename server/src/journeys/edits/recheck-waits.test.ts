import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { closeRenderer } from '../../../test/engine.ts'
import { aJourneyWorker, anActiveJourney, anAppOf, aReachableUser, aTagSegment } from '../../../test/entry.ts'
import { record } from '../../../test/events.ts'
import { aWait, updateNode, view } from '../../../test/journeys.ts'
import { expectExact } from '../../../test/runs.ts'
import type { MadeUser } from '../../../test/users.ts'
import { virtualClock } from '../../lib/clock.ts'

let server: TestApp
let app: TestApp
let users: MadeUser[]
const clock = virtualClock('2030-03-15T09:00:00Z')
beforeAll(async () => {
  server = await testApp({ clock })
})
afterAll(async () => {
  await server.close()
  await closeRenderer()
})
beforeEach(async () => {
  app = await anAppOf(server)
})

const work = () => aJourneyWorker(app, clock).work()
const until = (name: string, fields: object = {}) => ({
  kind: 'wait_until',
  branches: [{ condition: { kind: 'event_trigger', name }, nodes: [aWait()] }],
  ...fields,
})

/** Two people wait for something that does not happen; the first of them has bought something meanwhile. */
async function waitingForNothing(fields: object = {}) {
  const segment = await aTagSegment(app)
  users = [await aReachableUser(app, segment.tags), await aReachableUser(app, segment.tags)]
  const audience = { kind: 'segment', included_segment_ids: [segment.id] }
  const journey = await anActiveJourney(app, work, { audience, nodes: [until('sold', fields)] })
  clock.advance({ minutes: 10 })
  await record(app, [{ name: 'bought', external_id: (users[0] as MadeUser).externalId }])
  await work()
  const { nodes } = (await view(app, journey.id)).body
  return { id: journey.id as string, node: nodes[0] }
}

const placeOf = async (id: string, user: MadeUser | undefined) =>
  (await expectExact(app, id)).find(({ userId }) => userId === user?.id)

test('a condition that is changed to what has happened already leads on at once', async () => {
  const { id, node } = await waitingForNothing()
  const [branch] = node.branches
  const condition = { ...branch.condition, name: 'bought' }
  expect((await updateNode(app, id, node.id, { branches: [{ ...branch, condition }] })).status).toBe(200)
  await work()
  expect(await placeOf(id, users[0])).toMatchObject({ nodeId: branch.nodes[0].id, state: 'waiting' })
  expect(await placeOf(id, users[1])).toMatchObject({ nodeId: node.id, dueAt: null, untilAt: null })
})

test('so does one that is added', async () => {
  const { id, node } = await waitingForNothing()
  const added = { condition: { kind: 'event_trigger', name: 'bought' }, nodes: [] }
  expect((await updateNode(app, id, node.id, { branches: [...node.branches, added] })).status).toBe(200)
  await work()
  expect(await placeOf(id, users[0])).toMatchObject({ state: 'completed' })
  expect(await placeOf(id, users[1])).toMatchObject({ nodeId: node.id })
})

test('who waited for ever expires as if it had been said when they came, whoever did not keeps their moment', async () => {
  const { id, node } = await waitingForNothing()
  const arrivedAt = (await placeOf(id, users[0]))?.arrivedAt as Date
  expect((await updateNode(app, id, node.id, { expiration: { duration_seconds: 3_600, exits: true } })).status).toBe(
    200,
  )
  await work()
  const untilAt = new Date(arrivedAt.getTime() + 3_600_000)
  for (const user of users) expect(await placeOf(id, user)).toMatchObject({ nodeId: node.id, untilAt, dueAt: untilAt })
  expect((await updateNode(app, id, node.id, { expiration: { duration_seconds: 60, exits: true } })).status).toBe(200)
  await work()
  for (const user of users) expect(await placeOf(id, user)).toMatchObject({ nodeId: node.id, untilAt, dueAt: untilAt })
  clock.advance({ minutes: 50 })
  await work()
  for (const user of users) expect(await placeOf(id, user)).toMatchObject({ state: 'exited' })
})

test('an expiration that is over already frees them at once', async () => {
  const { id, node } = await waitingForNothing()
  expect((await updateNode(app, id, node.id, { expiration: { duration_seconds: 300, exits: false } })).status).toBe(200)
  await work()
  for (const user of users) expect(await placeOf(id, user)).toMatchObject({ state: 'completed' })
})

test('another change of the node disturbs nobody', async () => {
  const { id, node } = await waitingForNothing()
  const branches = [{ ...node.branches[0], nodes: [] }]
  expect((await updateNode(app, id, node.id, { annotation: 'Wait', branches })).status).toBe(200)
  for (const user of users) expect(await placeOf(id, user)).toMatchObject({ nodeId: node.id, dueAt: null })
})
