import Type from 'typebox'
import type { Route } from '../../http/route.ts'
import { route } from '../../http/route.ts'
import type { AppId } from '../../lib/ids.ts'
import type { IssuedKey, KeyScope, KeySummary } from '../app.ts'
import { actorOf } from '../audit/actor.ts'
import type { AppsContext } from '../context.ts'
import { changeKey, issueKey, listKeys, revokeKey, rotateKey } from './keys.ts'
import { IssuedKeyAnswer, type KeyAnswer, KeyBody, KeyPath, KeysAnswer, KeysPath, NewKeyBody } from './schema.ts'

const common = { errors: 'apps' as const, tag: 'API keys', access: { kind: 'organization' as const } }
const done = { status: 200, body: {} }

const keysOf = (appId: AppId): KeyScope => ({ kind: 'app', appId })

const issued = ({ keyId, key }: IssuedKey) => ({ status: 200, body: { token_id: keyId, formatted_token: key } })

const keyAnswer = (key: KeySummary): KeyAnswer => ({
  token_id: key.id,
  name: key.name,
  permissions: key.permissions,
  ip_allowlist_mode: key.ipAllowlistMode,
  ip_allowlist: key.ipAllowlist,
  created_at: key.createdAt.toISOString(),
  updated_at: key.updatedAt.toISOString(),
  last_used_at: key.lastUsedAt?.toISOString() ?? null,
})

export const keyRoutes = (ctx: AppsContext): Route[] => [
  route({
    ...common,
    operation: 'listApiKeys',
    method: 'GET',
    path: '/apps/:app_id/auth/tokens',
    summary: 'View API keys',
    limits: [{ rule: 'read' }],
    params: KeysPath,
    answers: { 200: KeysAnswer },
    async handle({ app }) {
      // Makes `last_used_at` include the requests that this server has seen.
      await ctx.usage.flush()
      const keys = await listKeys(ctx, keysOf(app.id))
      return { status: 200, body: { tokens: keys.map(keyAnswer) } }
    },
  }),
  route({
    ...common,
    operation: 'createApiKey',
    method: 'POST',
    path: '/apps/:app_id/auth/tokens',
    summary: 'Create API key',
    description: 'The key is shown this once. An app has at most 16.',
    limits: [{ rule: 'write' }],
    params: KeysPath,
    body: NewKeyBody,
    answers: { 200: IssuedKeyAnswer },
    async handle(call) {
      const { name, permissions, ip_allowlist: ipAllowlist = [], ip_allowlist_mode: mode = 'disabled' } = call.body
      const draft = { name, ipAllowlist, ipAllowlistMode: mode, ...(permissions && { permissions }) }
      return issued(await issueKey(ctx, keysOf(call.app.id), draft, actorOf(call)))
    },
  }),
  route({
    ...common,
    operation: 'updateApiKey',
    method: 'PATCH',
    path: '/apps/:app_id/auth/tokens/:token_id',
    summary: 'Update API key',
    description: 'What is left out stays as it is. Works on every server within 5 seconds.',
    limits: [{ rule: 'write' }],
    params: KeyPath,
    body: KeyBody,
    answers: { 200: Type.Object({}) },
    async handle(call) {
      const { name, permissions, ip_allowlist: ipAllowlist, ip_allowlist_mode: ipAllowlistMode } = call.body
      const changes = { name, permissions, ipAllowlist, ipAllowlistMode }
      await changeKey(ctx, keysOf(call.app.id), call.params.token_id, changes, actorOf(call))
      return done
    },
  }),
  route({
    ...common,
    operation: 'rotateApiKey',
    method: 'POST',
    path: '/apps/:app_id/auth/tokens/:token_id/rotate',
    summary: 'Rotate API key',
    description: 'A new secret for the same key. The old one stops working on every server within 5 seconds.',
    limits: [{ rule: 'write' }],
    params: KeyPath,
    answers: { 200: IssuedKeyAnswer },
    async handle(call) {
      return issued(await rotateKey(ctx, keysOf(call.app.id), call.params.token_id, actorOf(call)))
    },
  }),
  route({
    ...common,
    operation: 'deleteApiKey',
    method: 'DELETE',
    path: '/apps/:app_id/auth/tokens/:token_id',
    summary: 'Delete API key',
    description: 'It stops working on every server within 5 seconds.',
    limits: [{ rule: 'write' }],
    params: KeyPath,
    answers: { 200: Type.Object({}) },
    async handle(call) {
      await revokeKey(ctx, keysOf(call.app.id), call.params.token_id, actorOf(call))
      return done
    },
  }),
]
