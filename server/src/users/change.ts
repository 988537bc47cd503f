// Every change to users goes through here: creating a user with something that already exists, aliases, properties,
// subscriptions, transfer, deletion, and the legacy players. Concurrent requests of one app share one transaction:
//   1. find the users that the requests refer to, and lock their rows in the order of their ids
//   2. load them with everything they own (under the locks nobody else changes it)
//   3. apply the requests one after the other in memory; a refused request leaves no trace
//   4. write the difference as sets, and commit before any request is answered
// An alias or a subscription is only ever changed under the lock of its user's row. For one that has no owner yet the
// unique constraints decide, and the loser starts again.

import type { Clock } from '../lib/clock.ts'
import type { AppId, NewId, UserId } from '../lib/ids.ts'
import { createQueue } from '../queue/enqueue.ts'
import type { Db } from '../storage/db.ts'
import type { MergeOutcome, Merger } from '../storage/merge.ts'
import { enqueueFeedJob } from './change-feed/change-feed.ts'
import { type LoadOptions, loadLockedUsers } from './load-store.ts'
import { lockReferencedUsers } from './reference-store.ts'
import type { OwnerRef } from './user.ts'
import { createWorkingSet, type WorkingSet } from './working-set.ts'
import { writeDifference } from './write-difference.ts'

export type UserCommand<Result = unknown> = {
  /** Everything this request may read or change. */
  refs: OwnerRef[]
  /** What is loaded of the users besides themselves and their aliases. What is not loaded cannot be changed. */
  needs?: Partial<LoadOptions>
  apply(state: WorkingSet, now: string): Result
}

export type ChangeUsers = <Result>(appId: AppId, command: UserCommand<Result>) => Promise<Result>

type ChangeContext = { db: Db; clock: Clock; newId: NewId; merger: Merger }

const ROUNDS = 50

export function createChangeUsers({ db, clock, newId, merger }: ChangeContext): ChangeUsers {
  const queue = createQueue({ clock, newId })
  const submit = merger.merged<UserCommand, unknown>({
    name: 'users.change',
    async run(appId, commands) {
      const outcomes: MergeOutcome<unknown>[] = new Array(commands.length)
      let open = commands.map((_, i) => i)
      const seen = new Set<UserId>()
      for (let round = 0; open.length > 0; round++) {
        try {
          if (round === ROUNDS) throw new Error('users keep moving while they are being changed')
          open = await runRound(appId, commands, open, seen, outcomes)
        } catch (error) {
          // What earlier rounds committed must not be done again: only the remaining commands get the error.
          if (open.length === commands.length) throw error
          for (const i of open) outcomes[i] = { error }
          return outcomes
        }
      }
      return outcomes
    },
  })

  /**
   * Runs these commands in one transaction. Returns those that refer to a user who could not be locked, because the
   * alias or token moved to another user, or the user was deleted, while this transaction waited; they need another
   * round. Users locked in an earlier round are locked again: otherwise something that several servers pass around
   * among the same users could be somewhere else in every round.
   */
  async function runRound(
    appId: AppId,
    commands: UserCommand[],
    open: number[],
    seen: Set<UserId>,
    outcomes: MergeOutcome<unknown>[],
  ) {
    const { moved, isNews } = await db.transaction(async (db) => {
      const refs = open.flatMap((i) => (commands[i] as UserCommand).refs)
      const again = [...seen].map((id): OwnerRef => ({ id }))
      const { ids, pointing, watched } = await lockReferencedUsers(db, appId, [...refs, ...again])
      for (const id of ids) seen.add(id)
      // Read under the locks, so that a later transaction has a later time.
      const now = clock.now()
      const loading = {
        subscriptions: open.some((i) => commands[i]?.needs?.subscriptions),
        purchases: open.some((i) => commands[i]?.needs?.purchases),
      }
      const free = refs.filter((ref) => !pointing.has(ref))
      const { users, taken } =
        ids.length === 0
          ? { users: [], taken: new Set<OwnerRef>() }
          : await loadLockedUsers(db, appId, ids, loading, free)
      const state = createWorkingSet(users)
      const isSettled = (ref: OwnerRef) => !(pointing.has(ref) || taken.has(ref)) || state.ownerOf(ref) !== undefined
      const [settled, moved] = partition(open, (i) => (commands[i] as UserCommand).refs.every(isSettled))
      for (const i of settled) outcomes[i] = apply(state, commands[i] as UserCommand, now.toISOString())
      const jobs = await writeDifference({ db, queue, newId, watched }, appId, state, now)
      return { moved, isNews: jobs.length > 0 }
    })
    if (isNews) await enqueueFeedJob(queue, db, appId)
    return moved
  }

  return (appId, command) => submit(appId, command) as never
}

function apply(state: WorkingSet, command: UserCommand, now: string): MergeOutcome<unknown> {
  try {
    return { value: state.attempt(() => command.apply(state, now)) }
  } catch (error) {
    return { error }
  }
}

function partition<Item>(items: Item[], test: (item: Item) => boolean): [Item[], Item[]] {
  const yes: Item[] = []
  const no: Item[] = []
  for (const item of items) (test(item) ? yes : no).push(item)
  return [yes, no]
}
