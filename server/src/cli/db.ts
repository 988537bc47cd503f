import { systemClock } from '../lib/clock.ts'
import { distribute, hasCitus, planDistribution } from '../storage/distribute.ts'
import { migrate } from '../storage/migrate.ts'
import type { CliCommand } from './command.ts'
import { lookAtSchema, withDatabase, withStore } from './connect.ts'
import { count } from './print.ts'

/** Moving the rows of a large table may take hours. */
const DAY_MS = 24 * 60 * 60 * 1_000

export const dbCommands: CliCommand[] = [
  {
    name: 'migrate',
    summary: 'Migrate the database to this version. A server does this itself when it starts.',
    usage: '[--dry-run]',
    flags: { 'dry-run': 'switch' },
    examples: ['carillon migrate --dry-run', 'carillon migrate'],
    run: ({ config, given }) =>
      withDatabase(config, async (connection) => {
        if (given.has('dry-run')) {
          const { pending } = await lookAtSchema(connection)
          return { json: { pending }, text: listed('to apply', pending) }
        }
        const applied = await migrate(connection, systemClock().now())
        return { json: { applied }, text: listed('applied', applied) }
      }),
  },
  {
    name: 'db distribute',
    summary: 'Distribute the tables over a Citus cluster, with each app’s rows on one node. Repeat it after upgrades.',
    usage: '[--dry-run]',
    flags: { 'dry-run': 'switch' },
    examples: ['carillon db distribute --dry-run', 'carillon db distribute'],
    run: ({ config, given }) =>
      withStore(
        config,
        async ({ db }) => {
          if (given.has('dry-run')) {
            const statements = (await planDistribution(db)).map(({ text }) => `${text};`)
            return { json: { statements }, text: statements.join('\n') }
          }
          if (!(await hasCitus(db)))
            throw new Error(
              'the database has no Citus; install it there, run "create extension citus", and add the worker nodes first',
            )
          const done = await distribute(db)
          return {
            json: { placed: done.map(({ name, placement }) => ({ table: name, placement })) },
            text:
              done.length === 0
                ? 'Every table is in its place already.'
                : `${count(done.length, 'table')} placed: ${done.map(({ name }) => name).join(', ')}.`,
          }
        },
        { statementTimeoutMs: DAY_MS },
      ),
  },
]

const listed = (what: string, names: string[]) =>
  names.length === 0
    ? 'The database is up to date.'
    : [`${count(names.length, 'migration')} ${what}:`, ...names.map((name) => `  ${name}`)].join('\n')
