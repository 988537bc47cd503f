import { SYSTEM } from '../apps/app.ts'
import { createOrganization } from '../apps/create.ts'
import { issueKey } from '../apps/keys/keys.ts'
import { findAllApps, findOrganizations } from '../apps/store.ts'
import type { CliCommand } from './command.ts'
import { withStore } from './connect.ts'
import { fields, table } from './print.ts'

export const orgCommands: CliCommand[] = [
  {
    name: 'org create',
    summary: 'Create an organization and its first key. On a new database this also creates the tables.',
    usage: '--name NAME',
    flags: { name: 'text' },
    examples: ['carillon org create --name "Example Ltd"', 'carillon org create --name "Example Ltd" --json'],
    run: ({ config, given }) => {
      const name = given.needed('name')
      return withStore(
        config,
        async ({ db, clock }) => {
          const { organizationId, key } = await db.transaction(async (db) => {
            const organizationId = await createOrganization({ db, clock }, { name }, SYSTEM)
            const scope = { kind: 'org', organizationId } as const
            const { key } = await issueKey({ db, clock }, scope, { name: 'First organization key' }, SYSTEM)
            return { organizationId, key }
          })
          return {
            json: { organization_id: organizationId, key },
            text: `${fields([
              ['organization id', organizationId],
              ['key', key],
            ])}\n\nThe key is shown this once; keep it safe.`,
          }
        },
        { begins: true },
      )
    },
  },
  {
    name: 'org list',
    summary: 'List the organizations of this server, and how many apps each has.',
    usage: '',
    examples: ['carillon org list', 'carillon org list --json'],
    run: ({ config }) =>
      withStore(config, async ({ db }) => {
        const apps = await findAllApps(db)
        const organizations = (await findOrganizations(db)).map(({ id, name, createdAt }) => ({
          organization_id: id,
          name,
          apps: apps.filter(({ organizationId }) => organizationId === id).length,
          created_at: createdAt,
        }))
        return {
          json: organizations,
          text:
            organizations.length === 0
              ? 'There are no organizations.'
              : table(
                  ['ORGANIZATION', 'APPS', 'NAME'],
                  organizations.map((it) => [it.organization_id, String(it.apps), it.name]),
                ),
        }
      }),
  },
]
