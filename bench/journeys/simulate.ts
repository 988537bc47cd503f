// The dry run of a journey: how long it takes against interpreting the same steps in a bare loop, and what it does to everybody else.

import type pg from 'pg'
import type { Journey } from '../../server/src/journeys/journey.ts'
import { compileJourney } from '../../server/src/journeys/runs/compile-journey.ts'
import { interpretRun, type RunOutcome } from '../../server/src/journeys/runs/interpret.ts'
import type { Run } from '../../server/src/journeys/runs/run.ts'
import { newId } from '../../server/src/lib/ids.ts'
import { make } from '../kit/make.ts'
import { type Carillon, headersOf, startLoadTool } from '../kit/processes.ts'
import { type Row, round } from '../kit/report.ts'
import { settle } from '../kit/seed.ts'

const DAY = 86_400
const DAYS = 30

/** A split, then waits, windows, questions and a send, again and again for four weeks. */
const nodesOf = (templateId: string, segmentId: string) => {
  const week = () => [
    { kind: 'send_email', template_id: templateId },
    { kind: 'wait', duration_seconds: 2 * DAY },
    {
      kind: 'yes_no',
      branches: [
        {
          condition: { kind: 'segment_membership', included_segment_ids: [segmentId], excluded_segment_ids: [] },
          nodes: [{ kind: 'wait', duration_seconds: DAY }],
        },
        { nodes: [] },
      ],
    },
    {
      kind: 'time_window',
      relative_to: 'schedule_in_timezone',
      windows: [{ start: { hour: 9, minute: 0 }, end: { hour: 17, minute: 0 } }],
      time_zone: 'Europe/Berlin',
      use_user_time_zone: true,
    },
    {
      kind: 'split_range',
      randomize_on_entry: true,
      branches: [
        { weight: 50, nodes: [{ kind: 'tag', assignments: { half: 'one' } }] },
        { weight: 50, nodes: [] },
      ],
    },
    { kind: 'wait', duration_seconds: 4 * DAY },
  ]
  return [...week(), ...week(), ...week(), ...week()]
}

/** `users` are there already, as seedUsers makes them: each with an email address and the tag plan=free. */
export async function measureSimulation(
  carillon: Carillon,
  connection: pg.ClientConfig,
  { users, rounds, seconds }: { users: number; rounds: number; seconds: number },
): Promise<Row[]> {
  const { appId } = carillon
  const filters = [{ field: 'tag', key: 'plan', relation: '=', value: 'free' }]
  const segment = await make(carillon, `/apps/${appId}/segments`, { name: newId(), filters })
  const template = await make(carillon, '/templates', {
    app_id: appId,
    name: 'A mail',
    isEmail: true,
    email_subject: 'Hello',
    email_body: '<p>Hello</p>',
  })
  const journey = await make(carillon, `/apps/${appId}/journeys`, {
    name: 'Four weeks',
    audience: { kind: 'segment', included_segment_ids: [segment.id] },
    nodes: nodesOf(template.id, segment.id),
  })
  const simulate = () => make(carillon, `/apps/${appId}/journeys/${journey.id}/simulate`, { sample: 'all', days: DAYS })
  await settle(connection)

  const bareMs = interpretAll(journey, users)
  const tool = startLoadTool()
  const load = (forSeconds: number) =>
    tool.run({
      url: carillon.url,
      connections: 4,
      seconds: forSeconds,
      method: 'GET',
      path: `/apps/${appId}/users/by/external_id/seed-{n}/identity`,
      headers: headersOf(carillon),
      below: users,
    })
  try {
    const times: number[] = []
    for (let n = 0; n < rounds; n++) {
      const beganMs = performance.now()
      const report = await simulate()
      times.push(performance.now() - beganMs)
      if (report.users !== users || report.completed + report.still_inside + report.exited_early !== users)
        throw new Error(`somebody was lost: ${JSON.stringify({ ...report, nodes: undefined, pile_ups: undefined })}`)
    }
    const ms = Math.min(...times)
    await load(1)
    const idle = await load(seconds)
    let isOver = false
    const going = (async () => {
      while (!isOver) await simulate()
    })()
    const during = await load(Math.max(seconds, ms / 1_000))
    isOver = true
    await going
    return [
      {
        name: `dry run of ${users} users over ${DAYS} days, against interpreting alone`,
        ratio: round(bareMs / ms),
        goal: null,
        ms: Math.round(ms),
        referenceMs: Math.round(bareMs),
      },
      {
        name: 'the same: a minute against it',
        ratio: round(60_000 / ms),
        goal: 1,
        ms: Math.round(ms),
      },
      {
        name: 'view identity meanwhile: its idle p99 against its p99',
        ratio: round(idle.p99Ms / during.p99Ms),
        goal: null,
        p99Ms: during.p99Ms,
        idleP99Ms: idle.p99Ms,
        perSecond: Math.round(during.perSecond),
        idlePerSecond: Math.round(idle.perSecond),
      },
    ]
  } finally {
    tool.stop()
  }
}

/** The same journey for as many people with everything known: no database, no counts. */
function interpretAll(answered: Record<string, unknown>, users: number): number {
  const journey = compileJourney({
    id: answered.id as string,
    document: answered,
    version: 1,
    startedAt: null,
  } as unknown as Journey)
  const isIn = journey.nodes.flatMap((node) =>
    node.kind === 'yes_no' ? [[node.branches[0].id, true] as [string, boolean]] : [],
  )
  const known = new Map<string, string | boolean | null>([['zone', null], ...isIn])
  const startMs = Date.parse('2030-01-01T09:00:00Z')
  const endMs = startMs + DAYS * DAY * 1_000
  const beganMs = performance.now()
  for (let n = 0; n < users; n++) {
    const id = newId()
    const run: Run = {
      id,
      userId: id,
      nodeId: undefined,
      arrivedAt: undefined,
      untilAt: undefined,
      enteredAt: new Date(startMs),
      entryEvent: undefined,
      metEvents: [],
      wantsExit: false,
      exitsLater: false,
      hasPassed: false,
    }
    for (let atMs = startMs; atMs < endMs; ) {
      const outcome: RunOutcome = interpretRun(journey, run, new Date(atMs), known, { heldUntil: undefined })
      if (outcome.kind !== 'rests') break
      run.nodeId = outcome.nodeId
      run.arrivedAt = outcome.arrivedAt
      run.untilAt = outcome.untilAt
      run.hasPassed = true
      atMs = outcome.dueAt?.getTime() ?? endMs
    }
  }
  return performance.now() - beganMs
}
