import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { closeRenderer } from '../../../test/engine.ts'
import { aJourneyWorker, anActiveJourney, anAppOf, aTagSegment } from '../../../test/entry.ts'
import { aJourney, aWait, remove, someReferences, update } from '../../../test/journeys.ts'
import { virtualClock } from '../../lib/clock.ts'
import { sql } from '../../storage/sql.ts'

let server: TestApp
let app: TestApp
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
const active = (fields: Record<string, unknown>) => anActiveJourney(app, work, fields)
const byEvent = (name: string) => ({ kind: 'event_trigger', name })
const watched = async () =>
  (
    await app.db.query<{ what: string }>(sql`
      select trim(kind || ' ' || name) as what from watches where app_id = ${app.tenant.id} order by kind, name`)
  ).map(({ what }) => what)

test('users are watched for what live journeys listen for, from when they begin until they end', async () => {
  const { id: draft } = await aJourney(app, { audience: byEvent('bought'), nodes: [aWait()] })
  expect(await watched()).toEqual([])
  await update(app, draft, { state: 'active' })
  // While it is being activated already.
  expect(await watched()).toEqual(['event bought'])
  await work()
  const other = await active({
    audience: byEvent('came'),
    early_exit: { rules: { on_session: true, on_event: { name: 'left' } } },
  })
  expect(await watched()).toEqual(['event bought', 'event came', 'event left', 'session'])
  await update(app, other.id, { early_exit: { rules: { on_session: false, on_event: { name: 'gone' } } } })
  expect(await watched()).toEqual(['event bought', 'event came', 'event gone'])
  await update(app, other.id, { state: 'archived' })
  expect(await watched()).toEqual(['event bought'])
  expect((await remove(app, draft)).status).toBe(200)
  expect(await watched()).toEqual([])
})

test('and no longer when an activation is taken back, or a schedule stops the journey', async () => {
  const { id } = await aJourney(app, { audience: byEvent('bought'), nodes: [aWait()] })
  await update(app, id, { state: 'active' })
  await update(app, id, { state: 'draft' })
  expect(await watched()).toEqual([])
  const at = (seconds: number) => new Date(clock.now().getTime() + seconds * 1000).toISOString()
  const scheduled = await update(app, id, { schedule: { start_at: at(600), stop_at: at(1200) }, state: 'scheduled' })
  expect(scheduled.body).toMatchObject({ state: 'scheduled' })
  expect(await watched()).toEqual([])
  clock.advance({ seconds: 600 })
  await work()
  expect(await watched()).toEqual(['event bought'])
  clock.advance({ seconds: 600 })
  await work()
  expect(await watched()).toEqual([])
})

test('every kind of listening, at any depth', async () => {
  const segment = await aTagSegment(app)
  const { pushId } = await someReferences(app)
  const until = (condition: object, nodes: object[] = []) => ({ kind: 'wait_until', branches: [{ condition, nodes }] })
  const membership = { kind: 'segment_membership', included_segment_ids: [segment.id], excluded_segment_ids: [] }
  const heard = async (fields: Record<string, unknown>) => {
    const { id } = await active(fields)
    const found = await watched()
    await update(app, id, { state: 'archived' })
    expect(await watched()).toEqual([])
    return found
  }
  expect(await heard({ audience: { kind: 'segment', included_segment_ids: [segment.id] } })).toEqual(['change'])
  expect(await heard({ audience: byEvent('a'), nodes: [until(membership)] })).toEqual(['change', 'event a'])
  const exits = { rules: { on_segment: { included_segment_ids: [segment.id] } } }
  expect(await heard({ audience: byEvent('a'), early_exit: exits })).toEqual(['change', 'event a'])
  const split = (nodes: object[]) => ({ kind: 'split_range', branches: [{ weight: 100, nodes }, { weight: 0 }] })
  expect(await heard({ audience: byEvent('a'), nodes: [split([until({ ...byEvent('b') })])] })).toEqual([
    'event a',
    'event b',
  ])
  const clicked = { kind: 'on_notification_action', action: 'clicked', client_node_id: 'hello' }
  expect(
    await heard({
      audience: byEvent('a'),
      nodes: [{ kind: 'send_push', template_id: pushId, client_node_id: 'hello' }, until(clicked)],
    }),
  ).toEqual(['action', 'event a'])
  // Asked once, when somebody comes by.
  const asks = { kind: 'yes_no', branches: [{ condition: membership, nodes: [aWait()] }, { nodes: [] }] }
  expect(await heard({ audience: byEvent('a'), nodes: [asks] })).toEqual(['event a'])
})

test('of changes at once none is lost', async () => {
  const names = Array.from({ length: 8 }, (_, n) => `event ${n}`)
  const drafts = await Promise.all(
    names.map((name) => aJourney(app, { audience: byEvent(name.slice(6)), nodes: [aWait()] })),
  )
  await Promise.all(drafts.map(({ id }) => update(app, id, { state: 'active' })))
  expect(await watched()).toEqual(names)
  await work()
  expect(await watched()).toEqual(names)
  await Promise.all(drafts.map(({ id }, n) => (n < 4 ? update(app, id, { state: 'archived' }) : remove(app, id))))
  expect(await watched()).toEqual([])
})
