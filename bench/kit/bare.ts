// The reference: Fastify routes with the same request schemas and the same answers as ours, and nothing behind them.

import fastify from 'fastify'
import { CreateMessageBody } from '../../server/src/messages/schema.ts'
import { CreateUserBody, IdentityBody, UpdateUserBody } from '../../server/src/users/schema.ts'

/** Of users: create, update, alias and identity; of messages: message. */
export type BareAnswers = Partial<Record<'create' | 'update' | 'alias' | 'identity' | 'message', unknown>>

process.once('message', async (answers: BareAnswers) => {
  const app = fastify({
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, allowUnionTypes: true } },
  })
  const user = '/apps/:app_id/users/by/:alias_label/:alias_id'
  app.post('/apps/:app_id/users', { schema: { body: CreateUserBody } }, async (_, reply) => {
    reply.code(201)
    return answers.create
  })
  app.patch(user, { schema: { body: UpdateUserBody } }, async (_, reply) => {
    reply.code(202)
    return answers.update
  })
  app.patch(`${user}/identity`, { schema: { body: IdentityBody } }, async () => answers.alias)
  app.get(`${user}/identity`, async () => answers.identity)
  app.post('/notifications', { schema: { body: CreateMessageBody } }, async () => answers.message)
  process.send?.({ url: await app.listen({ port: 0, host: '127.0.0.1' }) })
})
