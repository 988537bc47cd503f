// Describes the state of a run in a sentence.

import type { JourneyState } from '../journey.ts'
import { type JourneyNode, waitConditionsOf } from '../nodes/kinds.ts'
import type { BranchCondition } from '../nodes/node.ts'
import type { TracedRun } from '../runs/lifecycle-store.ts'
import type { RunState } from '../runs/run.ts'

const ENDED: Record<Exclude<RunState, 'waiting'>, string> = {
  completed: 'The user came to the end of the journey.',
  exited:
    'The user left the journey before its end: by a rule of early exit, at a wait that ends so, or taken out by hand.',
  stopped: 'The journey was archived while the user was in it.',
  barred:
    'The user was in the audience when the journey was activated, and it is for those who come later: they do not enter.',
}

const NOT_ACTIVE: Record<Exclude<JourneyState, 'active'>, string> = {
  draft: 'The journey is a draft again; the user is about to be taken out.',
  scheduled: 'The journey has not begun; the user is about to be taken out.',
  processing: 'The user is in, and begins when the journey is active.',
  archived: 'The journey was archived; the user is about to be stopped.',
}

const CONDITIONS: Record<BranchCondition['kind'], string> = {
  segment_membership: 'the user comes into a segment',
  on_notification_action: 'something becomes of a message that was sent to the user',
  event_trigger: 'an event of the user',
}

type Told = Pick<TracedRun, 'state' | 'nodeId' | 'arrivedAt' | 'untilAt' | 'dueAt'>

/** `heldBy`: the reason why the run may not continue. */
export function describeRun(
  journeyState: JourneyState,
  run: Told,
  node: JourneyNode | undefined,
  heldBy: string | undefined,
  now: Date,
): string {
  if (run.state !== 'waiting') return ENDED[run.state]
  if (journeyState !== 'active') return NOT_ACTIVE[journeyState]
  if (heldBy !== undefined) return `The user waits to be sent something. ${heldBy} Then the user goes on.`
  if (run.nodeId === null) return 'The user has entered, and is about to come to the first node.'
  if (!run.arrivedAt || (run.dueAt && run.dueAt <= now)) return 'The user is about to go on.'
  const until = run.untilAt?.toISOString()
  const waiting = node && waitConditionsOf(node)
  if (waiting) {
    const what = [...new Set(waiting.branches.map(({ condition }) => CONDITIONS[condition.kind]))].join(', or ')
    return until
      ? `The user waits for this: ${what}; until ${until} at the latest.`
      : `The user waits for this, however long it takes: ${what}.`
  }
  return until ? `The user waits until ${until}.` : 'The user waits.'
}
