import fastify from 'fastify'
import { fakeServer, listen } from '/work/main/server/src/http/fakes.ts'
const bare = fastify()
const schema = { body: { type: 'object', properties: { identity: { type: 'object', additionalProperties: { type: 'string', maxLength: 128 } }, subscriptions: { type: 'array', items: { type: 'object', required: ['type'], properties: { type: { type: 'string' }, token: { type: 'string' } } } } } } }
bare.post('/apps/:app_id/users', { schema }, async (request) => ({ params: request.params, body: request.body }))
const kit = fakeServer()
await bare.listen({ port: 0, host: '127.0.0.1' })
const which = process.argv[2]; const port = which === "bare" ? (bare.server.address() as any).port : await listen(kit.app); console.log(port)
