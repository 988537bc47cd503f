import { SYSTEM_APP_ID } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import type { Queue } from './enqueue.ts'
import type { JobHandler, JobHandlers, JobRun } from './job.ts'
import { takeSlots } from './store.ts'

const DAY_MS = 86_400_000

/** Recurring work that runs on one node at a time. `dailyAt` is "HH:MM" in UTC. */
export type Schedule = { name: string; run(work: JobRun): Promise<void>; timeLimitMs?: number } & (
  | { everyMs: number }
  | { dailyAt: string }
)

/**
 * The latest time at or before `now` at which the schedule is due. Earlier times that were missed are not made up for.
 */
export function lastSlot(schedule: Schedule, now: Date): Date {
  const [everyMs, offsetMs] = 'everyMs' in schedule ? [schedule.everyMs, 0] : [DAY_MS, timeOfDay(schedule.dailyAt)]
  return new Date(Math.floor((now.getTime() - offsetMs) / everyMs) * everyMs + offsetMs)
}

function timeOfDay(text: string): number {
  const [, hours, minutes] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text) ?? []
  if (hours === undefined) throw new Error(`not a time of day: ${text}`)
  return (Number(hours) * 60 + Number(minutes)) * 60_000
}

const jobName = (schedule: Schedule) => `schedule.${schedule.name}`

// Each schedule has one key, so that a slow run and the next slot never overlap. A run that fails for good is therefore
// dropped; parked, it would stop the schedule until an operator released it.
const asHandler = ({ run, timeLimitMs }: Schedule): JobHandler => ({
  run,
  maxAttempts: 5,
  whenExhausted: 'drop',
  ...(timeLimitMs !== undefined && { timeLimitMs }),
})

export const scheduleHandlers = (schedules: readonly Schedule[]): JobHandlers =>
  Object.fromEntries(schedules.map((schedule) => [jobName(schedule), asHandler(schedule)]))

/** Enqueues each schedule's latest slot once over all nodes. A new schedule runs as soon as it is seen. */
export function createSlots(schedules: readonly Schedule[], queue: Queue) {
  // Slots that this node has seen enqueued, so that it need not query for them again.
  const seen = new Map<string, number>()
  return async function enqueueSlots(db: Db, now: Date) {
    const slots = schedules
      .map((schedule) => ({ name: jobName(schedule), slot: lastSlot(schedule, now) }))
      .filter(({ name, slot }) => seen.get(name) !== slot.getTime())
    if (slots.length === 0) return
    await db.transaction(async (db) => {
      const taken = new Set((await takeSlots(db, slots)).map(({ name }) => name))
      const jobs = slots.filter(({ name }) => taken.has(name))
      await queue.enqueue(
        db,
        jobs.map(({ name, slot }) => ({ appId: SYSTEM_APP_ID, name, key: name, payload: { slot } })),
      )
    })
    for (const { name, slot } of slots) seen.set(name, slot.getTime())
  }
}
