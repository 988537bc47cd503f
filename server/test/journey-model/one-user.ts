// One user once on the way through a journey, read from the journey as its author sees it: a tree. It is written from what the
// documents say and knows nothing of how the engine does it, which is held against it. Wherever somebody rests this function
// stops, and whoever goes on with it at a later moment finds out whether that changes anything.

// Chance is all that it shares with the engine: which number a user draws is nobody's rule, only that it is always the same one.
import { pickNumber } from '../../src/journeys/nodes/pick.ts'

export type Happening = { name: string; n: number; at: Date }

export type Person = {
  id: string
  tags: Record<string, string>
  /** Hours ahead of UTC; undefined when it is not known. */
  zone: number | undefined
  lastActive: Date
  events: Happening[]
  sessions: Date[]
}

type Condition = {
  kind: string
  included_segment_ids: string[]
  excluded_segment_ids: string[]
  name: string
  attributes: { value: string }[][]
  entry_event_match_attributes: object[]
}
type TimePoint = { hour: number; minute: number }
type Branch = { id: string; nodes: Node[]; weight: number; condition: Condition }
export type Node = {
  id: string
  kind: string
  duration_seconds: number
  relative_to: string
  windows: { start: TimePoint; end: TimePoint; day_of_week?: number }[]
  time_zone: string
  use_user_time_zone: boolean
  assignments: Record<string, string>
  user_ttl_seconds: number | null
  randomize_on_entry: boolean
  branches: Branch[]
  expiration: { duration_seconds: number; exits: boolean } | null
}
type Segments = { included_segment_ids: string[]; excluded_segment_ids?: string[] }
export type Audience = Segments & Pick<Condition, 'kind' | 'name' | 'attributes'> & { future_additions_only: boolean }
export type Journey = {
  id: string
  audience: Audience
  early_exit: {
    rules: {
      on_segment: Segments | null
      when_not_in_audience: boolean
      on_session: boolean
      on_event: { name: string } | null
    }
    tag_on_early_exit: Record<string, string>
  } | null
  reentry_rules: { duration_seconds: number } | null
  nodes: Node[]
}

export type Run = {
  /** As the engine calls it, for chance. */
  id: () => string
  person: Person
  entryEvent: Happening | undefined
  enteredAt: Date
  state: 'waiting' | 'completed' | 'exited'
  /** Where they rest, or left; none when they are through. */
  nodeId: string | null
  untilAt: Date | null
  /** Nodes and branches that they came by, nodes that were done with them, and events by which a condition was met. */
  path: string[]
  done: string[]
  met: Happening[]
}

export type World = {
  now: () => Date
  isIn: (segmentId: string, person: Person) => boolean
  tell: (kind: 'send' | 'call' | 'grant', person: Person, node: Node) => void
}

/** Hours ahead of UTC of zones that never put their clocks forward or back. */
export const ZONES: Record<string, number> = { UTC: 0, 'Asia/Tokyo': 9, 'Asia/Kolkata': 5.5, 'America/Phoenix': -7 }

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

export const isMember = ({ isIn }: World, person: Person, segments: Segments): boolean => {
  const [included, excluded] = [segments.included_segment_ids, segments.excluded_segment_ids ?? []]
  if (excluded.some((id) => isIn(id, person))) return false
  return included.length === 0 || included.some((id) => isIn(id, person))
}

/** Generated conditions on attributes all ask for `n` to be at least something. */
export const isMeant = ({ name, attributes }: Pick<Condition, 'name' | 'attributes'>, event: Happening) =>
  event.name === name && attributes.flat().every(({ value }) => event.n >= Number(value))

export const setTags = ({ tags }: Person, assignments: Record<string, string>) => {
  for (const [key, value] of Object.entries(assignments))
    if (value === '') delete tags[key]
    else tags[key] = value
}

type Rests = Generator<undefined, boolean, undefined>

export function* travel(journey: Journey, run: Run, world: World): Generator<undefined, void, undefined> {
  const { person, entryEvent } = run
  const { early_exit: early, audience } = journey
  const { now } = world

  /** What they did since they came in, without the event that let them in. */
  const since = () => person.events.filter((it) => it !== entryEvent && it.at >= (entryEvent?.at ?? run.enteredAt))
  const isFirst = () => run.done.length === 0

  // Early exit: something happened since, or something is so. What let them in may be what sends them away, too.
  const happened = () =>
    (early?.rules.on_event && since().some(({ name }) => name === early.rules.on_event?.name)) ||
    (early?.rules.on_session && person.sessions.some((at) => at >= (entryEvent?.at ?? run.enteredAt)))
  const isSo = () =>
    (early?.rules.on_segment && isMember(world, person, early.rules.on_segment)) ||
    (early?.rules.when_not_in_audience && audience.kind === 'segment' && !isMember(world, person, audience))
  const byEntry = () => early?.rules.on_event != null && entryEvent?.name === early.rules.on_event.name
  const leave = () => {
    setTags(person, early?.tag_on_early_exit ?? {})
    return false
  }

  /** One after the other; false when they left on the way. */
  function* follow(nodes: Node[]): Rests {
    for (const node of nodes) {
      run.nodeId = node.id
      if (!isFirst() && (happened() || byEntry() || isSo())) return leave()
      if (!(yield* visit(node))) return false
    }
    return true
  }

  function* visit(node: Node): Rests {
    switch (node.kind) {
      case 'wait':
        return yield* restUntil(node, after(node.duration_seconds))
      case 'time_window':
        return yield* restUntil(node, opensAt(node))
      case 'wait_until':
        return yield* waitUntil(node)
      case 'yes_no':
        return yield* enter(node, node.branches[holds(node.branches[0]?.condition as Condition, now()) ? 0 : 1])
      case 'split_range':
        return yield* enter(node, drawn(node))
    }
    run.path.push(node.id)
    run.done.push(node.id)
    if (node.kind === 'tag') setTags(person, node.assignments)
    else world.tell(node.kind === 'send_iam' ? 'grant' : node.kind === 'send_webhook' ? 'call' : 'send', person, node)
    return true
  }

  const after = (seconds: number) => new Date(now().getTime() + seconds * 1_000)

  function* restUntil(node: Node, until: Date): Rests {
    if ((yield* rest(node, until, () => (now() >= until ? 'over' : undefined))) === undefined) return leave()
    run.done.push(node.id)
    return true
  }

  /** Branches are tried from top to bottom. What is seen late counts if it came in time, as far as it says when it came. */
  function* waitUntil(node: Node): Rests {
    const until = node.expiration && after(node.expiration.duration_seconds)
    const found = yield* rest(node, until, () => {
      const branch = node.branches.find(({ condition }) => holds(condition, until ?? now()))
      return branch ?? (until && now() >= until ? 'over' : undefined)
    })
    if (found === undefined) return leave()
    if (found !== 'over') return yield* into(node, found, until ?? now())
    if (node.expiration?.exits) return false
    run.done.push(node.id)
    return true
  }

  /**
   * Until `look` finds something; undefined when they leave before. Whoever is at the first node is done with it before leaving,
   * if they were to leave when they came; else they leave when it happens, there as anywhere.
   */
  function* rest<T>(node: Node, until: Date | null, look: () => T | undefined): Generator<undefined, T | undefined> {
    const wasSo = isSo()
    for (let hasCome = false; ; hasCome = true) {
      const leaves = isFirst() ? happened() || (isSo() && !wasSo) : happened() || byEntry() || isSo()
      const found = look()
      if (leaves && (found === undefined || !isFirst())) return undefined
      if (!hasCome) run.path.push(node.id)
      if (found !== undefined) return found
      run.untilAt = until
      yield
    }
  }

  function* enter(node: Node, branch: Branch | undefined): Rests {
    run.path.push(node.id)
    return yield* into(node, branch as Branch, now())
  }

  function* into(node: Node, { id, nodes, condition }: Branch, upTo: Date): Rests {
    if (condition?.kind === 'event_trigger') run.met.push(...matching(condition, upTo).slice(-1))
    run.path.push(id)
    run.done.push(node.id, id)
    return yield* follow(nodes)
  }

  function holds(condition: Condition, upTo: Date): boolean {
    if (condition.kind === 'segment_membership') return isMember(world, person, condition)
    return matching(condition, upTo).length > 0
  }

  /** Generated ones ask for `n` to be that of the entry event, or for nothing. Oldest first. */
  const matching = (condition: Condition, upTo: Date) =>
    since().filter(
      (it) =>
        isMeant(condition, it) &&
        it.at <= upTo &&
        (condition.entry_event_match_attributes.length === 0 || it.n === entryEvent?.n),
    )

  function drawn({ id, randomize_on_entry: isAnew, branches }: Node): Branch | undefined {
    let number = pickNumber(journey.id, id, person.id, ...(isAnew ? [run.id()] : [])) * 100
    for (const branch of branches) {
      number -= branch.weight
      if (number < 0) return branch
    }
    return branches.at(-1)
  }

  /**
   * Now, while a window is open; else a moment inside the next. Windows are looked at on the user's wall, minute by minute. The
   * time of day at which they were last active comes every 24 hours, in all of these zones.
   */
  function opensAt(node: Node): Date {
    const aheadMs = ((node.use_user_time_zone ? person.zone : undefined) ?? ZONES[node.time_zone] ?? 0) * HOUR
    if (node.relative_to === 'last_active_time') {
      const lateMs = (now().getTime() - person.lastActive.getTime()) % DAY
      return new Date(now().getTime() + (lateMs === 0 ? 0 : DAY - lateMs))
    }
    const isOpen = (ms: number) => node.windows.some((window) => isInside(window, ms + aheadMs))
    if (isOpen(now().getTime())) return now()
    let startMs = Math.ceil(now().getTime() / MINUTE) * MINUTE
    while (!isOpen(startMs)) startMs += MINUTE
    let endMs = startMs
    while (isOpen(endMs)) endMs += MINUTE
    return new Date(startMs + Math.floor(pickNumber(run.id(), node.id) * (endMs - startMs)))
  }

  const isThrough = yield* follow(journey.nodes)
  run.state = isThrough ? 'completed' : 'exited'
  run.untilAt = null
  if (isThrough) run.nodeId = null
}

/** On the wall; 1 January 1970 was a Thursday, and 1 is Monday. */
function isInside({ start, end, day_of_week: day }: Node['windows'][number], wallMs: number): boolean {
  const timeOf = ({ hour, minute }: TimePoint) => hour * HOUR + minute * MINUTE
  const [from, to, at] = [timeOf(start), timeOf(end), wallMs % DAY]
  const isDay = (ms: number) => day === undefined || ((Math.floor(ms / DAY) + 3) % 7) + 1 === day
  if (from < to) return isDay(wallMs) && at >= from && at < to
  return (isDay(wallMs) && at >= from) || (isDay(wallMs - DAY) && at < to)
}
