// Journeys of one user each, as plain objects in memory: what the engine with all its sets, jobs and rows must come to as well.

import type { Compiled } from '../../src/journeys/runs/compiled.ts'
import { type Effect, interpret, type Question } from '../../src/journeys/runs/interpret.ts'
import { matchesEntry, matchesEvent } from '../../src/journeys/runs/match-event.ts'
import type { Run, RunEvent } from '../../src/journeys/runs/run.ts'

export type ModelUser = { id: string; tags: Record<string, string>; events: (RunEvent & { ms: number })[] }

export type ModelRun = Run & {
  state: 'waiting' | 'completed' | 'exited'
  dueAt: Date | undefined
  path: string[]
}

/** Whether a user is in a segment: these ask for a tag. */
export type IsIn = (segmentId: string, user: ModelUser) => boolean

export type Told = { sends: number; calls: number; grants: number }

export function createModel(journey: Compiled, isIn: IsIn) {
  const users = new Map<string, ModelUser>()
  const runs = new Map<string, ModelRun>()
  const told = new Map<string, Told>()

  const meets = (user: ModelUser, included: readonly string[], excluded: readonly string[]) =>
    (included.length === 0 || included.some((id) => isIn(id, user))) && !excluded.some((id) => isIn(id, user))

  function answer(run: ModelRun, user: ModelUser, question: Question): boolean | null {
    if (question.kind === 'exit') return meets(user, journey.exit?.segmentIds ?? [], [])
    if (question.kind !== 'condition') return null
    const { condition } = question
    if (condition.kind === 'segment_membership')
      return meets(user, condition.included_segment_ids, condition.excluded_segment_ids)
    if (condition.kind !== 'event_trigger') return false
    const since = Date.parse(run.entryEvent?.at ?? '')
    return user.events.some(
      (it) =>
        it.id !== run.entryEvent?.id &&
        it.ms >= since &&
        matchesEvent(condition, it) &&
        matchesEntry(condition.entry_event_match_attributes, it.properties, run.entryEvent?.properties ?? {}),
    )
  }

  function apply(user: ModelUser, effect: Effect) {
    const sum = told.get(user.id) ?? { sends: 0, calls: 0, grants: 0 }
    told.set(user.id, sum)
    if (effect.kind === 'send') sum.sends++
    if (effect.kind === 'call') sum.calls++
    if (effect.kind === 'grant') sum.grants++
    if (effect.kind !== 'tag') return
    for (const [key, value] of Object.entries(effect.assignments))
      if (value === '') delete user.tags[key]
      else user.tags[key] = value
  }

  function step(run: ModelRun, now: Date) {
    const user = users.get(run.userId) as ModelUser
    const known = new Map<string, boolean | null>()
    for (;;) {
      const outcome = interpret(journey, run, now, known, { heldUntil: undefined })
      if (outcome.kind === 'asks') {
        for (const question of outcome.questions) known.set(question.key, answer(run, user, question))
        continue
      }
      for (const effect of outcome.effects) apply(user, effect)
      run.path.push(...outcome.trail)
      run.nodeId = outcome.nodeId
      run.arrivedAt = outcome.kind === 'rests' ? outcome.arrivedAt : undefined
      run.untilAt = outcome.kind === 'rests' ? outcome.untilAt : undefined
      run.dueAt = outcome.kind === 'rests' ? outcome.dueAt : undefined
      run.state = outcome.kind === 'rests' ? 'waiting' : outcome.state
      run.hasPassed = run.path.length > 1 || (run.path.length === 1 && run.arrivedAt === undefined)
      return
    }
  }

  const runsOf = (userId: string) => [...runs.values()].filter((it) => it.userId === userId && it.state === 'waiting')

  return {
    users,
    runs,
    told,
    add: (id: string) => users.set(id, { id, tags: {}, events: [] }),
    enter(id: string, userId: string, event: RunEvent, now: Date) {
      runs.set(id, {
        ...{ id, userId, nodeId: undefined, arrivedAt: undefined, untilAt: undefined, enteredAt: now },
        ...{ entryEvent: event, wantsExit: false, hasPassed: false, state: 'waiting', dueAt: now, path: [] },
      })
    },
    /** Whoever rests is looked at whenever something happens to their user. */
    setTag(userId: string, key: string, value: string, now: Date) {
      const user = users.get(userId) as ModelUser
      if (value === '') delete user.tags[key]
      else user.tags[key] = value
      for (const run of runsOf(userId)) run.dueAt = now
    },
    record(userId: string, event: RunEvent, now: Date) {
      users.get(userId)?.events.push({ ...event, ms: Date.parse(event.at) })
      for (const run of runsOf(userId)) {
        run.dueAt = now
        if (event.name === journey.exit?.eventName) run.wantsExit = true
      }
    },
    /** All that is due, and what that makes due. */
    settle(now: Date) {
      for (let isMoving = true; isMoving; ) {
        isMoving = false
        for (const run of runs.values()) {
          if (run.state !== 'waiting' || run.dueAt === undefined || run.dueAt > now) continue
          step(run, now)
          isMoving = true
        }
      }
    },
  }
}
