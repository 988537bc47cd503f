import { SYSTEM_APP_ID } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import type { Queue } from './enqueue.ts'
import type { JobHandler, JobHandlers, JobRun } from './job.ts'
import { takeSlots } from './store.ts'

const DAY_MS = 86_400_000

/** Work that recurs, on one node at a time. `dailyAt` is "HH:MM" in UTC. */
export type Schedule = { name: string; run(work: JobRun): Promise<void>; timeLimitMs?: number } & (
  | { everyMs: number }
  | { dailyAt: string }
)

/** The newest moment at or before `now` at which the schedule was to run; the ones before it are not made up for. */
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

// One key per schedule, so that a slow run and the next slot never overlap. A run that failed for good must therefore
// give way, or the schedule would stand still until an operator came.
const asHandler = ({ run, timeLimitMs }: Schedule): JobHandler => ({
  run,
  maxAttempts: 5,
  whenExhausted: 'drop',
  ...(timeLimitMs !== undefined && { timeLimitMs }),
})

export const scheduleHandlers = (schedules: readonly Schedule[]): JobHandlers =>
  Object.fromEntries(schedules.map((schedule) => [jobName(schedule), asHandler(schedule)]))

/** Enqueues each schedule's newest slot once over all nodes; a new schedule runs at first sight. */
export function createSlots(schedules: readonly Schedule[], queue: Queue) {
  // What this node has seen handed out need not be asked for again.
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
