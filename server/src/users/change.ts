// Every change to users goes through here: create with something known, alias, property, subscription, transfer, delete,
// the legacy players. Concurrent requests of one app are one transaction:
//   1. find whom the requests point at, and lock those user rows in the order of their ids
//   2. load them with all they own (under the locks nobody else changes it)
//   3. apply the requests one after the other in memory; a refused one leaves no trace
//   4. write the difference as sets, and commit before anyone is answered
// An alias or a subscription is only ever changed under the lock of its user's row; what nobody owns yet
// is decided by the unique constraints, and the loser looks again.

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
  /** What is loaded of the users beyond themselves and their aliases; what is not loaded cannot be changed. */
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
          // What earlier rounds committed is done and must not be done again: the error is for the others alone.
          if (open.length === commands.length) throw error
          for (const i of open) outcomes[i] = { error }
          return outcomes
        }
      }
      return outcomes
    },
  })

  /**
   * Run these commands in one transaction. Those that point at somebody who could not be locked (who got what they name,
   * or was deleted, while this transaction waited) come back for another. Whoever was locked in an earlier round is locked
   * again: what several servers pass around among the same users would otherwise always be elsewhere.
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
      // Taken under the locks, so that who comes later is later.
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
