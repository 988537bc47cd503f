import { readFile } from 'node:fs/promises'
import { type AppPlan, type AppSettings, SYSTEM } from '../apps/app.ts'
import { configureNewWith } from '../apps/configure.ts'
import { createApp, setApp } from '../apps/create.ts'
import { issueKey } from '../apps/keys/keys.ts'
import { type AppOverview, findAllApps, findApp, lockApp } from '../apps/store.ts'
import { appNotFound } from '../lib/errors.ts'
import type { AppId } from '../lib/ids.ts'
import { hasRule, ruleNames } from '../limits/rules.ts'
import type { Config } from '../settings/config.ts'
import type { Db } from '../storage/db.ts'
import { reasonOf } from '../storage/embedded/error.ts'
import { type CliCommand, type CliInput, readId, UsageError } from './command.ts'
import { type Store, withStore } from './connect.ts'
import { openSecrets } from './open-secrets.ts'
import { fields, onOff, table } from './print.ts'

export const appCommands: CliCommand[] = [
  {
    name: 'app create',
    summary: 'Create an app in an organization, with its first key.',
    usage: '--org ORGANIZATION_ID --name NAME',
    flags: { org: 'text', name: 'text' },
    examples: ['carillon app create --org 0b6e3ad6-52ab-4a35-8b04-6a1f6e3a1c11 --name "Shop"'],
    run: ({ config, given }) => {
      const organizationId = given.neededId('org')
      const name = given.needed('name')
      return withStore(config, async (store) => {
        const { db, clock } = store
        const { defaultPlan } = config
        const configureNew = config.sink ? await forSink(store, config) : undefined
        const { appId, key } = await db.transaction(async (db) => {
          const appId = await createApp({ db, clock, configureNew, defaultPlan }, organizationId, { name }, SYSTEM)
          const { key } = await issueKey({ db, clock }, { kind: 'app', appId }, { name: 'First app key' }, SYSTEM)
          return { appId, key }
        })
        return {
          json: { app_id: appId, organization_id: organizationId, key },
          text: `${fields([
            ['app id', appId],
            ['organization id', organizationId],
            ['key', key],
          ])}\n\nThe key is shown this once; keep it safe.`,
        }
      })
    },
  },
  {
    name: 'app list',
    summary: 'List the apps of this server, or of one organization.',
    usage: '[--org ORGANIZATION_ID]',
    flags: { org: 'text' },
    examples: ['carillon app list', 'carillon app list --json'],
    run: ({ config, given }) => {
      const organizationId = given.id('org')
      return withStore(config, async ({ db }) => {
        const apps = await findAllApps(db, organizationId)
        return {
          json: apps.map(shown),
          text:
            apps.length === 0
              ? 'There are no apps.'
              : table(
                  ['APP', 'ORGANIZATION', 'PLAN', 'NAME'],
                  apps.map((app) => [app.id, app.organizationId, app.plan, app.name]),
                ),
        }
      })
    },
  },
  {
    name: 'app set',
    summary: 'Change the settings of an app. Limits are requests per second; "default" restores the limit of the plan.',
    usage:
      'APP_ID [--name NAME] [--plan free|paid] [--limit LIMIT=N|default …] [--keyless on|off] [--identity-key FILE] [--require-identity on|off]',
    flags: {
      name: 'text',
      plan: 'text',
      limit: 'list',
      keyless: 'text',
      'identity-key': 'text',
      'require-identity': 'text',
    },
    words: { least: 1, most: 1 },
    examples: [
      'carillon app set 7d0e6c5e-1f0b-4c52-9a53-2b1c2c9b4e0f --plan paid --limit users.write=2000',
      'carillon app set 7d0e6c5e-1f0b-4c52-9a53-2b1c2c9b4e0f --limit users.write=default',
      'carillon app set 7d0e6c5e-1f0b-4c52-9a53-2b1c2c9b4e0f --identity-key public.pem --require-identity on',
    ],
    run: async ({ config, given }) => {
      const appId: AppId = readId(given.words[0] as string, 'APP_ID')
      const changes = await readChanges(given)
      const limits = readLimits(given.list('limit'))
      if (Object.keys(changes).length === 0 && limits.length === 0)
        throw new UsageError('"app set" needs something to set')
      return withStore(config, async (store) => {
        const app = await change(store, appId, changes, limits)
        return { json: shown(app), text: described(app) }
      })
    },
  },
]

/** Where the server's providers are stand-ins, new apps use them, whoever creates the app. */
async function forSink(store: Store, config: Config) {
  const { newAppSettings, smsSettings } = await import('../sink/app-settings.ts')
  return configureNewWith(await openSecrets(store, config), newAppSettings(), smsSettings)
}

async function readChanges(given: CliInput): Promise<Partial<AppSettings>> {
  const name = given.text('name')
  const plan = given.text('plan')
  const keylessSdk = given.isOn('keyless')
  const identityRequired = given.isOn('require-identity')
  const file = given.text('identity-key')
  if (plan !== undefined && plan !== 'free' && plan !== 'paid') throw new UsageError('--plan must be free or paid')
  return {
    ...(name !== undefined && { name }),
    ...(plan !== undefined && { plan: plan as AppPlan }),
    ...(keylessSdk !== undefined && { keylessSdk }),
    ...(identityRequired !== undefined && { identityRequired }),
    ...(file !== undefined && { identityPublicKey: await readKeyFile(file) }),
  }
}

const readKeyFile = (file: string) =>
  readFile(file, 'utf8').catch((error) => {
    throw new Error(`cannot read ${file}: ${reasonOf(error)}`)
  })

type LimitChange = [limit: string, perSecond: number | 'default']

const readLimits = (texts: string[]) =>
  texts.map((text): LimitChange => {
    const [limit = '', value = ''] = text.split(/=(.*)/s)
    if (!hasRule(limit)) throw new UsageError(`--limit: "${limit}" is none of ${ruleNames().join(', ')}`)
    if (value === 'default') return [limit, value]
    if (!/^\d{1,15}$/.test(value))
      throw new UsageError(`--limit ${limit}: "${value}" is neither a whole number nor "default"`)
    return [limit, Number(value)]
  })

/** The limits of an app are one value, so they are read, changed and written under one lock. */
const change = ({ db, clock }: Store, appId: AppId, changes: Partial<AppSettings>, limits: LimitChange[]) =>
  db.transaction(async (db) => {
    const before = await lockApp(db, appId)
    if (!before) throw appNotFound()
    const after = { ...before.limits }
    for (const [limit, perSecond] of limits)
      if (perSecond === 'default') delete after[limit]
      else after[limit] = perSecond
    await setApp({ db, clock }, appId, { ...changes, ...(limits.length > 0 && { limits: after }) }, SYSTEM)
    return present(db, appId)
  })

async function present(db: Db, appId: AppId): Promise<AppOverview> {
  const app = await findApp(db, appId)
  if (!app) throw appNotFound()
  return app
}

const shown = (app: AppOverview) => ({
  app_id: app.id,
  organization_id: app.organizationId,
  name: app.name,
  plan: app.plan,
  limits: app.limits,
  keyless: app.keylessSdk,
  require_identity: app.identityRequired,
  has_identity_key: app.identityPublicKey !== null,
  created_at: app.createdAt,
})

const described = (app: AppOverview) =>
  fields([
    ['app id', app.id],
    ['name', app.name],
    ['plan', app.plan],
    [
      'own limits',
      Object.entries(app.limits)
        .map(([limit, perSecond]) => `${limit}=${perSecond}`)
        .join(' ') || 'none',
    ],
    ['keyless SDKs', onOff(app.keylessSdk)],
    ['identity key', app.identityPublicKey === null ? 'none' : 'present'],
    ['identity required', onOff(app.identityRequired)],
  ])
