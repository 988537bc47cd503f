import { type AppId, SYSTEM_APP_ID } from '../lib/ids.ts'
import type { JobId } from '../queue/job.ts'
import { countParked, deleteParked, listParked, releaseParked } from '../queue/parked.ts'
import type { Db } from '../storage/db.ts'
import { type CliCommand, type CliInput, readId, UsageError } from './command.ts'
import { withStore } from './connect.ts'
import { count, table } from './print.ts'

const WHICH = { app: 'text', all: 'switch' } as const
const MANY = { least: 0, most: Number.POSITIVE_INFINITY }

export const jobsCommands: CliCommand[] = [
  {
    name: 'jobs list',
    summary: 'List background jobs that failed too often and were parked, oldest first.',
    usage: '[--app APP_ID] [--limit N]',
    flags: { app: 'text', limit: 'text' },
    examples: ['carillon jobs list', 'carillon jobs list --app 7d0e6c5e-1f0b-4c52-9a53-2b1c2c9b4e0f --limit 20'],
    run: ({ config, given }) => {
      const app = given.id('app')
      const limit = given.text('limit') ?? '100'
      if (!/^[1-9]\d{0,5}$/.test(limit)) throw new UsageError('--limit must be an integer from 1 to 999999')
      return withStore(config, async ({ db }) => {
        const apps = await findParkedApps(db, app)
        const lists = await Promise.all(apps.map(({ appId }) => listParked(db, appId, Number(limit))))
        const jobs = lists.flat().sort((a, b) => a.parkedAt.getTime() - b.parkedAt.getTime())
        const total = apps.reduce((sum, app) => sum + app.count, 0)
        const listed = jobs.slice(0, Number(limit))
        return {
          json: listed.map((job) => ({
            job_id: job.id,
            app_id: job.appId,
            name: job.name,
            key: job.key,
            parked_at: job.parkedAt,
            attempts: job.attempts,
            crashes: job.crashes,
            last_error: job.lastError,
          })),
          text:
            listed.length === 0
              ? 'There are no parked jobs.'
              : `${table(
                  ['JOB', 'APP', 'PARKED', 'NAME', 'ERROR'],
                  listed.map((job) => [
                    job.id,
                    job.appId === SYSTEM_APP_ID ? 'none' : job.appId,
                    job.parkedAt.toISOString(),
                    job.name,
                    firstLine(job.lastError),
                  ]),
                )}${total > listed.length ? `\n\n${total - listed.length} more; see them with --limit ${total}.` : ''}`,
        }
      })
    },
  },
  {
    name: 'jobs release',
    summary: 'Release parked jobs to run again, with their attempts reset.',
    usage: '(JOB_ID … | --all) [--app APP_ID]',
    flags: WHICH,
    words: MANY,
    examples: [
      'carillon jobs release 91c0f1de-70d3-4f3c-8a64-3a0a4b0b4c11',
      'carillon jobs release --all --app 7d0e6c5e-1f0b-4c52-9a53-2b1c2c9b4e0f',
    ],
    run: ({ config, given }) => {
      const which = readWhich(given, 'jobs release')
      return withStore(config, async ({ db, clock }) => {
        const now = clock.now()
        const released = await forEachApp(db, which, (appId, ids) => releaseParked(db, appId, ids, now))
        return outcome('released', released, which)
      })
    },
  },
  {
    name: 'jobs delete',
    summary: 'Delete parked jobs. Their work is not done.',
    usage: '(JOB_ID … | --all) [--app APP_ID]',
    flags: WHICH,
    words: MANY,
    examples: ['carillon jobs delete 91c0f1de-70d3-4f3c-8a64-3a0a4b0b4c11'],
    run: ({ config, given }) => {
      const which = readWhich(given, 'jobs delete')
      return withStore(config, async ({ db }) => {
        const deleted = await forEachApp(db, which, (appId, ids) => deleteParked(db, appId, ids))
        return outcome('deleted', deleted, which)
      })
    },
  },
]

const firstLine = (text: string | null) => (text ?? '').split('\n')[0]?.slice(0, 120) ?? ''

type Which = { app: AppId | undefined; ids: JobId[] | 'all' }

function readWhich(given: CliInput, name: string): Which {
  const app = given.id('app')
  if (given.has('all') === given.words.length > 0) throw new UsageError(`"${name}" needs either job ids or --all`)
  return { app, ids: given.has('all') ? 'all' : given.words.map((word) => readId(word, 'JOB_ID')) }
}

async function findParkedApps(db: Db, only: AppId | undefined) {
  const apps = await countParked(db)
  return only === undefined ? apps : apps.filter(({ appId }) => appId === only)
}

/** A job id does not tell which app the job belongs to, so every app with parked jobs is tried. */
async function forEachApp(db: Db, { app, ids }: Which, act: (appId: AppId, ids: JobId[]) => Promise<number>) {
  let done = 0
  for (const { appId, count } of await findParkedApps(db, app))
    done += await act(appId, ids === 'all' ? (await listParked(db, appId, count)).map(({ id }) => id) : ids)
  return done
}

function outcome(verb: 'released' | 'deleted', done: number, { ids }: Which) {
  const missing = ids === 'all' ? 0 : new Set(ids).size - done
  return {
    json: { [verb]: done },
    text: `${count(done, 'job')} ${verb}${missing > 0 ? `; ${count(missing, 'id')} named no parked job` : ''}.`,
    failed: missing > 0,
  }
}
