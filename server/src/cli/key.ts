import { type KeyScope, SYSTEM } from '../apps/app.ts'
import { issueKey, listKeys, revokeKey } from '../apps/keys/keys.ts'
import { permissions as allPermissions, type Permission } from '../lib/permissions.ts'
import { type CliCommand, type CliInput, readId, UsageError } from './command.ts'
import { withStore } from './connect.ts'
import { fields, table } from './print.ts'

const SCOPE_FLAGS = { app: 'text', org: 'text' } as const

export const keyCommands: CliCommand[] = [
  {
    name: 'key create',
    summary: 'Create a key for an app or an organization. Without flags it has every permission, from any address.',
    usage: '(--app APP_ID | --org ORGANIZATION_ID) [--name NAME] [--permission PERMISSION …] [--allow NETWORK …]',
    flags: { ...SCOPE_FLAGS, name: 'text', permission: 'list', allow: 'list' },
    examples: [
      'carillon key create --app 7d0e6c5e-1f0b-4c52-9a53-2b1c2c9b4e0f --name "Back end"',
      'carillon key create --app 7d0e6c5e-1f0b-4c52-9a53-2b1c2c9b4e0f --permission users --permission messages --allow 192.0.2.0/24',
      'carillon key create --org 0b6e3ad6-52ab-4a35-8b04-6a1f6e3a1c11 --json',
    ],
    run: ({ config, given }) => {
      const scope = readScope(given, 'key create')
      const permissions = readPermissions(given.list('permission'))
      if (scope.kind === 'org' && permissions.length > 0)
        throw new UsageError('--permission is for the keys of apps; an organization’s keys have none')
      const draft = {
        name: given.text('name') ?? 'Made on the command line',
        ipAllowlist: given.list('allow'),
        ...(permissions.length > 0 && { permissions }),
      }
      return withStore(config, async (store) => {
        const { keyId, key } = await issueKey(store, scope, draft, SYSTEM)
        const [owner, ownerId] =
          scope.kind === 'app' ? (['app', scope.appId] as const) : (['organization', scope.organizationId] as const)
        return {
          json: { key_id: keyId, [`${owner}_id`]: ownerId, key },
          text: `${fields([
            ['key id', keyId],
            [`${owner} id`, ownerId],
            ['key', key],
          ])}\n\nThe key is shown this once; keep it safe.`,
        }
      })
    },
  },
  {
    name: 'key list',
    summary: 'List the keys of an app or an organization. Keys are stored as hashes and cannot be shown again.',
    usage: '(--app APP_ID | --org ORGANIZATION_ID)',
    flags: SCOPE_FLAGS,
    examples: ['carillon key list --app 7d0e6c5e-1f0b-4c52-9a53-2b1c2c9b4e0f'],
    run: ({ config, given }) => {
      const scope = readScope(given, 'key list')
      return withStore(config, async (store) => {
        const keys = await listKeys(store, scope)
        return {
          json: keys.map((key) => ({
            key_id: key.id,
            name: key.name,
            permissions: key.permissions,
            ip_allowlist_mode: key.ipAllowlistMode,
            ip_allowlist: key.ipAllowlist,
            created_at: key.createdAt,
            last_used_at: key.lastUsedAt,
          })),
          text:
            keys.length === 0
              ? 'There are no keys.'
              : table(
                  ['KEY', 'CREATED', 'LAST USED', 'MAY', 'FROM', 'NAME'],
                  keys.map((key) => [
                    key.id,
                    key.createdAt.toISOString().slice(0, 10),
                    key.lastUsedAt?.toISOString().slice(0, 10) ?? 'never',
                    scope.kind === 'org' || key.permissions.length === allPermissions.length
                      ? 'everything'
                      : key.permissions.join(',') || 'nothing',
                    (key.ipAllowlistMode === 'explicit' && key.ipAllowlist.join(',')) || 'everywhere',
                    key.name,
                  ]),
                ),
        }
      })
    },
  },
  {
    name: 'key revoke',
    summary: 'Revoke a key. Running servers refuse it within 5 seconds.',
    usage: '(--app APP_ID | --org ORGANIZATION_ID) KEY_ID',
    flags: SCOPE_FLAGS,
    words: { least: 1, most: 1 },
    examples: ['carillon key revoke --app 7d0e6c5e-1f0b-4c52-9a53-2b1c2c9b4e0f 5a4b7c0e-93e1-4b3f-8a68-0f2f6d1c7e55'],
    run: ({ config, given }) => {
      const scope = readScope(given, 'key revoke')
      const keyId = readId(given.words[0] as string, 'KEY_ID')
      return withStore(config, async (store) => {
        await revokeKey(store, scope, keyId, SYSTEM)
        return { json: { key_id: keyId, revoked: true }, text: `Revoked ${keyId}.` }
      })
    },
  },
]

function readScope(given: CliInput, name: string): KeyScope {
  const appId = given.id('app')
  const organizationId = given.id('org')
  if (appId !== undefined && organizationId === undefined) return { kind: 'app', appId }
  if (appId === undefined && organizationId !== undefined) return { kind: 'org', organizationId }
  throw new UsageError(`"${name}" needs either --app or --org`)
}

const readPermissions = (texts: string[]) =>
  texts.map((text): Permission => {
    const found = allPermissions.find((permission) => permission === text)
    if (!found) throw new UsageError(`--permission: "${text}" is none of ${allPermissions.join(', ')}`)
    return found
  })
