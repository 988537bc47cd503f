import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { closeRenderer } from '../../../test/engine.ts'
import {
  aJourneyWorker,
  anActiveJourney,
  anAppOf,
  aReachableUser,
  aTagSegment,
  countsOf,
  runsOf,
  tag,
} from '../../../test/entry.ts'
import { record } from '../../../test/events.ts'
import { view as viewUser } from '../../../test/users.ts'
import { virtualClock } from '../../lib/clock.ts'

let server: TestApp
let app: TestApp
let segment: Awaited<ReturnType<typeof aTagSegment>>
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
  segment = await aTagSegment(app)
})

const work = () => aJourneyWorker(app, clock).work()
const later = async (seconds: number) => {
  clock.advance({ seconds })
  await work()
}
const wait = (seconds: number) => ({ kind: 'wait', duration_seconds: seconds })
const active = (fields: object) =>
  anActiveJourney(app, work, {
    audience: { kind: 'segment', included_segment_ids: [segment.id] },
    nodes: [wait(60), wait(60)],
    ...fields,
  })
const states = async (id: string) => (await runsOf(app, id)).map(({ state }) => state)
const rules = { duration_seconds: 600 }

describe('who has been through a journey', () => {
  test('enters again when the time is over, and again after that', async () => {
    const user = await aReachableUser(app, segment.tags)
    const { id } = await active({ reentry_rules: rules })
    await later(60)
    await later(60)
    expect(await states(id)).toEqual(['completed'])
    await later(599)
    expect(await states(id)).toEqual(['completed'])
    await later(1)
    const [first, second] = await runsOf(app, id)
    expect(second).toMatchObject({ userId: user.id, state: 'waiting' })
    expect(second?.slot).not.toBe(first?.slot)
    await later(60)
    await later(60)
    await later(600)
    expect(await states(id)).toEqual(['completed', 'completed', 'waiting'])
    expect(await countsOf(app, id)).toEqual({ started: 3, completed: 2 })
  })

  test('and is not in its audience any more enters as soon as they are', async () => {
    const user = await aReachableUser(app, segment.tags)
    const { id } = await active({ reentry_rules: rules })
    await later(60)
    await tag(app, user, segment.untagged)
    await later(60)
    await later(600)
    expect(await states(id)).toEqual(['completed'])
    await later(3_600)
    await tag(app, user, segment.tags)
    await work()
    expect(await states(id)).toEqual(['completed', 'waiting'])
  })

  test('and comes back to its audience too early does not', async () => {
    const user = await aReachableUser(app, segment.tags)
    const { id } = await active({ reentry_rules: rules })
    await later(60)
    await later(60)
    await tag(app, user, segment.untagged)
    await work()
    await tag(app, user, segment.tags)
    await later(300)
    expect(await states(id)).toEqual(['completed'])
    await later(300)
    expect(await states(id)).toEqual(['completed', 'waiting'])
  })

  test('and left it early enters again, that long after leaving', async () => {
    const user = await aReachableUser(app, segment.tags)
    const { id } = await active({ reentry_rules: rules, early_exit: { rules: { on_event: { name: 'bought' } } } })
    await later(60)
    await record(app, [{ name: 'bought', external_id: user.externalId }])
    await work()
    expect(await states(id)).toEqual(['exited'])
    await later(599)
    expect(await states(id)).toEqual(['exited'])
    await later(1)
    expect(await states(id)).toEqual(['exited', 'waiting'])
    // What was bought before is of the first time.
    await later(60)
    await later(60)
    expect(await states(id)).toEqual(['exited', 'completed'])
    expect(await countsOf(app, id)).toEqual({ started: 2, completed: 1, exited_early: 1 })
  })

  test('never does without a rule', async () => {
    await aReachableUser(app, segment.tags)
    const { id } = await active({})
    await later(60)
    await later(60)
    await later(365 * 86_400)
    expect(await states(id)).toEqual(['completed'])
  })
})

describe('tag_on_early_exit', () => {
  const left = { left: 'at {{ step }}', plan: '{{ unknown }}', old: '' }

  test('is rendered, takes away, and leaves alone what comes out empty', async () => {
    const mine = { step: 'two', plan: 'gold', old: 'x' }
    const [leaves, stays] = [
      await aReachableUser(app, { ...segment.tags, ...mine }),
      await aReachableUser(app, { ...segment.tags, ...mine }),
    ]
    const early_exit = { rules: { on_event: { name: 'bought' } }, tag_on_early_exit: left }
    const { id } = await active({ early_exit, nodes: [wait(60), wait(600)] })
    await later(60)
    await record(app, [{ name: 'bought', external_id: leaves.externalId }])
    // Of an event and a wait that is over, told at once, nobody says which comes first.
    await work()
    await later(600)
    const tagsOf = async (user: typeof leaves) => (await viewUser(app, user)).properties.tags
    expect(await tagsOf(leaves)).toEqual({ ...segment.tags, step: 'two', plan: 'gold', left: 'at two' })
    expect(await tagsOf(stays)).toEqual({ ...segment.tags, ...mine })
    expect(await countsOf(app, id)).toEqual({ started: 2, completed: 1, exited_early: 1 })
  })
})
