// All who may be in a journey, each a reading of the journey of their own (one-user.ts): who comes in and when, who comes again, and
// what was done for them. The engine with all its sets, jobs and rows must come to the same.

import {
  type Happening,
  isMeant,
  isMember,
  type Journey,
  type Node,
  type Person,
  type Run,
  setTags,
  travel,
  type World,
} from './one-user.ts'

export type ModelRun = Run & { nth: number; goOn: () => void }

export type Told = { sends: number; calls: number; grantedUntil: Date | 'ever' | undefined }

/** `idOf`: what the engine calls the nth run of a user. */
export function createModel(
  journey: Journey,
  { isIn, idOf }: { isIn: World['isIn']; idOf: (userId: string, nth: number) => string },
) {
  const people = new Map<string, Person>()
  const runs: ModelRun[] = []
  const told = new Map<string, Told>()
  /** Who can never enter because they were there before. */
  const barred = new Set<string>()
  let clock = new Date(0)
  const world: World = { now: () => clock, isIn, tell }
  const { audience, reentry_rules: reentry } = journey

  function tell(kind: 'send' | 'call' | 'grant', { id }: Person, { user_ttl_seconds: seconds }: Node) {
    const sum = told.get(id) as Told
    if (kind === 'send') sum.sends++
    if (kind === 'call') sum.calls++
    if (kind !== 'grant' || sum.grantedUntil === 'ever') return
    const until = seconds === null ? 'ever' : new Date(clock.getTime() + seconds * 1_000)
    if (until === 'ever' || !sum.grantedUntil || until > sum.grantedUntil) sum.grantedUntil = until
  }

  const runsOf = ({ id }: Person) => runs.filter(({ person }) => person.id === id)

  function enter(person: Person, entryEvent?: Happening) {
    const nth = runsOf(person).length
    const run: ModelRun = {
      ...{ id: () => idOf(person.id, nth), nth, person, entryEvent, enteredAt: clock, state: 'waiting', goOn },
      ...{ nodeId: null, untilAt: null, path: [], done: [], met: [] },
    }
    const way = travel(journey, run, world)
    function goOn() {
      if (way.next().done) endings.set(run, clock)
    }
    runs.push(run)
  }

  const endings = new Map<Run, Date>()

  /** By segment: once, and again when the time of the rule is over since the end. */
  function mayEnter(person: Person): boolean {
    const last = runsOf(person).at(-1)
    if (barred.has(person.id)) return false
    if (!last) return true
    const endedAt = endings.get(last)
    return !!endedAt && !!reentry && clock.getTime() >= endedAt.getTime() + reentry.duration_seconds * 1_000
  }

  const find = (id: string) => people.get(id) as Person
  /** What happened since anybody looked that lets people in. */
  let entries: { person: Person; event: Happening }[] = []

  return {
    people,
    runs,
    told,
    add(person: Person) {
      people.set(person.id, person)
      told.set(person.id, { sends: 0, calls: 0, grantedUntil: undefined })
    },
    /** With `future_additions_only` nobody enters who is in one of the segments now, whichever. */
    activate() {
      if (audience.kind !== 'segment' || !audience.future_additions_only) return
      const { included_segment_ids: included, excluded_segment_ids: excluded = [] } = audience
      for (const person of people.values())
        if ([...included, ...excluded].some((id) => isIn(id, person))) barred.add(person.id)
    },
    setTag: (id: string, key: string, value: string) => setTags(find(id), { [key]: value }),
    record(id: string, event: Happening) {
      const person = find(id)
      person.events.push(event)
      if (audience.kind === 'event_trigger' && isMeant(audience, event)) entries.push({ person, event })
    },
    beginSession(id: string, at: Date) {
      find(id).sessions.push(at)
      find(id).lastActive = at
    },
    /** Everybody is looked at, whatever may have happened to them. */
    settle(now: Date) {
      clock = now
      for (const { person, event } of entries) enter(person, event)
      entries = []
      if (audience.kind === 'segment')
        for (const person of people.values()) if (mayEnter(person) && isMember(world, person, audience)) enter(person)
      for (const run of runs) if (run.state === 'waiting') run.goOn()
    },
  }
}
