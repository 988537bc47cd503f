import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { runJobs } from '../../../test/events.ts'
import {
  aJourney,
  aReadyJourney,
  aWait,
  codes,
  remove,
  someReferences,
  titles,
  update,
  view,
} from '../../../test/journeys.ts'
import { aSegment, tagIs } from '../../../test/segments.ts'
import { virtualClock } from '../../lib/clock.ts'

let app: TestApp
const clock = virtualClock('2030-01-01T09:00:00Z')
beforeAll(async () => {
  app = await testApp({ clock })
})
afterAll(() => app.close())

const work = () => runJobs(app, clock)
const at = (seconds: number) => new Date(clock.now().getTime() + seconds * 1000).toISOString()
const stateOf = async (id: string) => (await view(app, id)).body.state

async function anActiveJourney(fields: Record<string, unknown> = {}) {
  const { id, segmentId } = await aReadyJourney(app, fields)
  await update(app, id, { state: 'active' })
  await work()
  return { ...(await view(app, id)).body, segmentId }
}

/** Refused with 422, and nothing changes. */
async function refusalOf(id: string, body: Record<string, unknown>) {
  const before = (await view(app, id)).body
  const answer = await update(app, id, body)
  expect(answer.status).toBe(422)
  expect((await view(app, id)).body).toEqual(before)
  return { codes: [...new Set(codes(answer))], titles: titles(answer) }
}

describe('activation', () => {
  test('is queued: processing first, then active; started_at stays null until then and holds the time', async () => {
    const { id } = await aReadyJourney(app)
    clock.advance({ seconds: 1 })
    const asked = await update(app, id, { state: 'active' })
    expect(asked.status).toBe(200)
    expect(asked.body).toMatchObject({ state: 'processing', started_at: null })
    expect((await view(app, id)).body).toEqual(asked.body)
    clock.advance({ seconds: 10 })
    await work()
    expect((await view(app, id)).body).toEqual({
      ...asked.body,
      state: 'active',
      started_at: clock.now().toISOString(),
      updated_at: clock.now().toISOString(),
    })
  })

  test('does not change the concurrency key: only edits do', async () => {
    const { id } = await aReadyJourney(app)
    const { concurrency_key } = (await update(app, id, { state: 'active' })).body
    await work()
    const { body } = await view(app, id)
    expect(body).toMatchObject({ state: 'active', concurrency_key })
    expect((await update(app, id, { name: 'Still current', concurrency_key })).status).toBe(200)
    expect(
      (await app.app(`/journeys/${id}/versions`)).body.versions.map((it: { fields: string[] }) => it.fields),
    ).toEqual([['name'], ['state'], []])
  })

  test('started_at is set once, whatever is asked for again', async () => {
    const { id, started_at } = await anActiveJourney()
    clock.advance({ seconds: 5 })
    expect((await update(app, id, { state: 'active' })).body.started_at).toBe(started_at)
    await work()
    expect((await view(app, id)).body).toMatchObject({ state: 'active', started_at })
  })

  test('can be taken back to draft before it is done; then nothing happens', async () => {
    const { id } = await aReadyJourney(app)
    await update(app, id, { state: 'active' })
    expect((await update(app, id, { state: 'draft' })).body).toMatchObject({ state: 'draft', started_at: null })
    await work()
    expect((await view(app, id)).body).toMatchObject({ state: 'draft', started_at: null })
    await update(app, id, { state: 'active' })
    await work()
    expect(await stateOf(id)).toBe('active')
  })

  test('asking for active while it is processing changes nothing, and processing cannot be asked for', async () => {
    const { id } = await aReadyJourney(app)
    const refused = await update(app, id, { state: 'processing' })
    expect({ status: refused.status, titles: titles(refused) }).toEqual({
      status: 400,
      titles: ['state must be one of draft, scheduled, active, archived'],
    })
    const { body } = await update(app, id, { state: 'active' })
    expect((await update(app, id, { state: 'active' })).body).toEqual(body)
    // As whoever sends back what they were shown.
    expect((await update(app, id, { state: 'processing' })).body).toEqual(body)
  })

  test('can come together with an edit', async () => {
    const { nodes, audience } = await aReadyJourney(app)
    const { id } = await aJourney(app)
    expect((await update(app, id, { audience, nodes: nodes.map(() => aWait()), state: 'active' })).body.state).toBe(
      'processing',
    )
  })

  test('needs nodes, an audience, and everything that the journey names; all that is missing is told', async () => {
    const { id } = await aJourney(app)
    expect(await refusalOf(id, { state: 'active' })).toEqual({
      codes: ['journey-not-ready'],
      titles: [
        'nodes must not be empty when a journey is activated',
        'audience.included_segment_ids must name at least one segment when a journey is activated',
      ],
    })
    const it = await someReferences(app)
    const ready = await aReadyJourney(app, { nodes: [{ kind: 'send_webhook', webhook_id: it.webhookId }] })
    expect((await app.app(`/journey_webhooks/${it.webhookId}`, { method: 'DELETE' })).status).toBe(200)
    expect((await app.app(`/segments/${ready.segmentId}`, { method: 'DELETE' })).status).toBe(200)
    expect((await refusalOf(ready.id, { state: 'active' })).titles).toEqual([
      'audience.included_segment_ids[0] names a segment that is not there',
      'nodes[0].webhook_id names a journey webhook that is not there',
    ])
  })

  test('of a journey that is to start later is refused, and so is one that should have stopped', async () => {
    const later = await aReadyJourney(app, { schedule: { start_at: at(3600) } })
    expect((await refusalOf(later.id, { state: 'active' })).titles).toEqual([
      'schedule.start_at is in the future: ask for the state scheduled, or clear it to start now',
    ])
    expect((await update(app, later.id, { state: 'active', schedule: null })).status).toBe(200)
    const over = await aReadyJourney(app, { schedule: { stop_at: at(1) } })
    clock.advance({ seconds: 1 })
    expect((await refusalOf(over.id, { state: 'active' })).titles).toEqual(['schedule.stop_at must be in the future'])
  })

  test('by many at once is one', async () => {
    const { id } = await aReadyJourney(app)
    const answers = await Promise.all(Array.from({ length: 6 }, () => update(app, id, { state: 'active' })))
    expect(answers.map(({ body }) => body.state)).toEqual(Array(6).fill('processing'))
    await Promise.all([work(), work()])
    expect((await app.app(`/journeys/${id}/versions`)).body.versions).toHaveLength(2)
    expect(await stateOf(id)).toBe('active')
  })
})

describe('states', () => {
  const put = async (state: string) => {
    const { id } = await aReadyJourney(app, {
      schedule: { start_at: state === 'scheduled' ? at(3600) : null, stop_at: at(7200) },
    })
    if (state === 'scheduled') await update(app, id, { state })
    if (['processing', 'active', 'archived'].includes(state)) await update(app, id, { state: 'active' })
    if (['active', 'archived'].includes(state)) await work()
    if (state === 'archived') await update(app, id, { state })
    expect(await stateOf(id)).toBe(state)
    return id
  }

  test.each([
    ['draft', 'archived', 'state cannot go from draft to archived; from draft it can go to active or scheduled'],
    ['scheduled', 'active', 'state cannot go from scheduled to active; from scheduled it can go to draft'],
    ['scheduled', 'archived', 'state cannot go from scheduled to archived; from scheduled it can go to draft'],
    ['processing', 'scheduled', 'state cannot go from processing to scheduled; from processing it can go to draft'],
    ['processing', 'archived', 'state cannot go from processing to archived; from processing it can go to draft'],
    ['active', 'draft', 'state cannot go from active to draft; from active it can go to archived'],
    ['active', 'scheduled', 'state cannot go from active to scheduled; from active it can go to archived'],
    ['archived', 'draft', 'state cannot go from archived to draft; archived is final'],
    ['archived', 'active', 'state cannot go from archived to active; archived is final'],
  ])('from %s there is no way to %s', async (from, to, title) => {
    const id = await put(from)
    expect(await refusalOf(id, { state: to })).toEqual({ codes: ['journey-invalid-state'], titles: [title] })
  })

  test('archived is a journey that was stopped, and says when', async () => {
    const { id, started_at } = await anActiveJourney()
    clock.advance({ seconds: 7 })
    expect((await update(app, id, { state: 'archived' })).body).toMatchObject({
      state: 'archived',
      archived_at: clock.now().toISOString(),
      started_at,
    })
    await work()
    expect(await stateOf(id)).toBe('archived')
  })

  test('an archived journey cannot be changed', async () => {
    const id = await put('archived')
    expect(await refusalOf(id, { name: 'x', nodes: [] })).toEqual({
      codes: ['journey-invalid-state'],
      titles: ['name cannot be changed: the journey is archived', 'nodes cannot be changed: the journey is archived'],
    })
  })

  test('while a journey is processing, only its name and description can be changed', async () => {
    const id = await put('processing')
    expect((await update(app, id, { name: 'New', description: 'New' })).status).toBe(200)
    expect((await refusalOf(id, { nodes: [aWait()], reentry_rules: { duration_seconds: 600 } })).titles).toEqual([
      'reentry_rules cannot be changed while the journey is being activated',
      'nodes cannot be changed while the journey is being activated',
    ])
    expect((await update(app, id, { nodes: [aWait()], state: 'draft' })).status).toBe(200)
  })
})

describe('while a journey is active', () => {
  test('nodes, name and rules can be changed, the kind of entry cannot', async () => {
    const { id, nodes } = await anActiveJourney()
    expect(
      (await update(app, id, { name: 'New', nodes: [...nodes, aWait()], early_exit: { rules: { on_session: true } } }))
        .status,
    ).toBe(200)
    expect((await refusalOf(id, { audience: { kind: 'event_trigger', name: 'x' } })).titles).toEqual([
      'audience.kind cannot be changed while the journey is active',
    ])
    expect(await stateOf(id)).toBe('active')
  })

  test('its segments can be changed, but not with future_additions_only', async () => {
    const another = await aSegment(app, [tagIs('plan', 'gold')])
    const open = await anActiveJourney()
    expect((await update(app, open.id, { audience: { included_segment_ids: [another] } })).status).toBe(200)
    expect((await refusalOf(open.id, { audience: { included_segment_ids: [] } })).titles).toEqual([
      'audience.included_segment_ids must name at least one segment while the journey is active',
    ])
    expect((await refusalOf(open.id, { audience: { future_additions_only: true } })).titles).toEqual([
      'audience.future_additions_only cannot be changed while the journey is active',
    ])
    const { segmentId, ...ready } = await aReadyJourney(app)
    const locked = await anActiveJourney({ audience: { ...ready.audience, future_additions_only: true } })
    expect(
      (await refusalOf(locked.id, { audience: { included_segment_ids: [another], excluded_segment_ids: [another] } }))
        .titles,
    ).toEqual([
      'audience.included_segment_ids cannot be changed while the journey is active, with future_additions_only',
      'audience.excluded_segment_ids cannot be changed while the journey is active, with future_additions_only',
    ])
  })

  test('branches of a split cannot be edited; the nodes inside them can', async () => {
    const { id, nodes } = await anActiveJourney({
      nodes: [{ kind: 'split_range', branches: [{ weight: 50, nodes: [aWait()] }, { weight: 50 }] }],
    })
    const [split] = nodes
    const weighed = { ...split, branches: split.branches.map((it: object, n: number) => ({ ...it, weight: n * 100 })) }
    const title = `branches of the node ${split.id} cannot be added, removed or weighted anew while the journey is active`
    expect((await refusalOf(id, { nodes: [weighed] })).titles).toEqual([title])
    const more = { ...split, branches: [...split.branches, { weight: 0 }] }
    expect((await refusalOf(id, { nodes: [more] })).titles).toEqual([title])
    expect((await refusalOf(id, { nodes: [{ ...split, randomize_on_entry: true }] })).titles).toEqual([title])
    const inside = { ...split, branches: split.branches.map((it: object) => ({ ...it, nodes: [aWait(), aWait()] })) }
    expect((await update(app, id, { nodes: [inside] })).status).toBe(200)
    expect((await update(app, id, { nodes: [aWait()] })).status).toBe(200)
  })

  test('it can get a time to stop at, not one to start at', async () => {
    const { id } = await anActiveJourney()
    expect((await refusalOf(id, { schedule: { start_at: at(3600) } })).titles).toEqual([
      'schedule.start_at cannot be changed: the journey has started',
    ])
    expect((await update(app, id, { schedule: { stop_at: at(60) } })).status).toBe(200)
    clock.advance({ seconds: 60 })
    await work()
    expect(await stateOf(id)).toBe('archived')
  })
})

describe('a schedule', () => {
  const scheduled = async (schedule: object) => {
    const { id, segmentId } = await aReadyJourney(app, { schedule })
    expect((await update(app, id, { state: 'scheduled' })).body.state).toBe('scheduled')
    return { id, segmentId }
  }

  test('starts the journey at start_at and archives it at stop_at, to the millisecond', async () => {
    const { id } = await scheduled({ start_at: at(3600), stop_at: at(7200) })
    clock.advance({ seconds: 3600, ms: -1 })
    await work()
    expect((await view(app, id)).body).toMatchObject({ state: 'scheduled', started_at: null })
    clock.advance({ ms: 1 })
    await work()
    expect((await view(app, id)).body).toMatchObject({ state: 'active', started_at: clock.now().toISOString() })
    clock.advance({ seconds: 3600, ms: -1 })
    await work()
    expect(await stateOf(id)).toBe('active')
    clock.advance({ ms: 1 })
    await work()
    expect((await view(app, id)).body).toMatchObject({ state: 'archived', archived_at: clock.now().toISOString() })
  })

  test('needs a start in the future, and everything that an activation needs', async () => {
    const without = await aReadyJourney(app)
    expect((await refusalOf(without.id, { state: 'scheduled' })).titles).toEqual([
      'schedule.start_at must be in the future for the state scheduled',
    ])
    const empty = await aJourney(app, { schedule: { start_at: at(3600) } })
    expect((await refusalOf(empty.id, { state: 'scheduled' })).codes).toEqual(['journey-not-ready'])
    // Together with it will do.
    expect((await update(app, without.id, { state: 'scheduled', schedule: { start_at: at(3600) } })).status).toBe(200)
  })

  test('can be put off, brought forward, and taken back', async () => {
    const { id } = await scheduled({ start_at: at(3600) })
    await update(app, id, { schedule: { start_at: at(7200) } })
    clock.advance({ seconds: 3600 })
    await work()
    expect((await view(app, id)).body).toMatchObject({ state: 'scheduled', schedule: { error: null } })
    clock.advance({ seconds: 3600 })
    await work()
    expect(await stateOf(id)).toBe('active')

    const sooner = await scheduled({ start_at: at(7200) })
    await update(app, sooner.id, { schedule: { start_at: at(600) } })
    clock.advance({ seconds: 600 })
    await work()
    expect(await stateOf(sooner.id)).toBe('active')

    const other = await scheduled({ start_at: at(3600) })
    expect((await refusalOf(other.id, { schedule: null })).titles).toEqual([
      'schedule.start_at is needed while the journey is scheduled',
    ])
    expect((await update(app, other.id, { state: 'draft' })).body.state).toBe('draft')
    clock.advance({ seconds: 3600 })
    await work()
    expect(await stateOf(other.id)).toBe('draft')
  })

  test('a stop can be put off and taken away', async () => {
    const { id } = await scheduled({ start_at: at(3600), stop_at: at(7200) })
    clock.advance({ seconds: 3600 })
    await work()
    await update(app, id, { schedule: { stop_at: at(7200) } })
    clock.advance({ seconds: 3600 })
    await work()
    expect(await stateOf(id)).toBe('active')
    await update(app, id, { schedule: { stop_at: null } })
    clock.advance({ seconds: 3600 })
    await work()
    expect(await stateOf(id)).toBe('active')
  })

  test('of a journey that cannot start when its time has come: it stays, and says why', async () => {
    const { id, segmentId } = await scheduled({ start_at: at(3600) })
    expect((await app.app(`/segments/${segmentId}`, { method: 'DELETE' })).status).toBe(200)
    clock.advance({ seconds: 3600 })
    await work()
    const { body } = await view(app, id)
    expect(body).toMatchObject({
      state: 'scheduled',
      started_at: null,
      schedule: { error: 'audience.included_segment_ids[0] names a segment that is not there' },
    })
    const another = await aSegment(app, [tagIs('plan', 'gold')])
    const mended = await update(app, id, {
      audience: { included_segment_ids: [another] },
      schedule: { start_at: at(600) },
    })
    expect(mended.body.schedule.error).toBeNull()
    clock.advance({ seconds: 600 })
    await work()
    expect(await stateOf(id)).toBe('active')
  })

  test('of a journey that is gone does nothing', async () => {
    const { id } = await scheduled({ start_at: at(3600) })
    await remove(app, id)
    clock.advance({ seconds: 3600 })
    await work()
  })
})
