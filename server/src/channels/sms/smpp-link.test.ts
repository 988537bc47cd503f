import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readDelivered } from './smpp-deliver.ts'
import { openLink } from './smpp-link.ts'

/** A socket that takes what is written when it is told to. */
function stalledSocket() {
  const waiting: ((error?: Error) => void)[] = []
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => void waiting.push(done) })
  return { socket: socket as unknown as Socket, waiting }
}
const linkOver = (socket: Socket, answerMs = 10_000) =>
  openLink(socket, { answerMs, enquireMs: 60_000, onDeliver: async () => {} })

test('what had left when the connection ended is unanswered, what had not is unwritten', async () => {
  const { socket, waiting } = stalledSocket()
  const link = linkOver(socket)
  const replies = [link.ask('enquire_link', {}), link.ask('enquire_link', {})]
  waiting.shift()?.()
  await new Promise(setImmediate)
  socket.destroy()
  expect(await Promise.all(replies)).toEqual([{ kind: 'unanswered', reason: 'connection lost' }, { kind: 'unwritten' }])
  await link.ended
  expect(await link.ask('enquire_link', {})).toEqual({ kind: 'unwritten' })
})

test('what failed to be written is unwritten', async () => {
  const { socket, waiting } = stalledSocket()
  const link = linkOver(socket)
  const reply = link.ask('enquire_link', {})
  waiting.shift()?.(new Error('EPIPE'))
  expect(await reply).toEqual({ kind: 'unwritten' })
  await link.ended
})

test('what cannot be written in time never will be: the connection is given up', async () => {
  const { socket } = stalledSocket()
  const link = linkOver(socket, 20)
  expect(await link.ask('enquire_link', {})).toEqual({ kind: 'unwritten' })
  await link.ended
  expect(socket.destroyed).toBe(true)
})

test('whatever a centre hands over is answered, or ends the connection; nothing else comes of it', async () => {
  const DELIVER_SM = 5
  const frame = (body: Uint8Array) => {
    const head = Buffer.alloc(16)
    for (const [i, number] of [16 + body.length, DELIVER_SM, 0, 7].entries()) head.writeUInt32BE(number, 4 * i)
    return Buffer.concat([head, body])
  }
  /** Fields that mean something, with noise between them. */
  const field = fc.oneof(
    fc.constantFrom(
      Buffer.from([0]),
      Buffer.from('15005550001\0'),
      Buffer.from([4]),
      Buffer.from([0x40]),
      Buffer.from([8]),
    ),
    fc.constantFrom(
      Buffer.from([0x04, 0x24, 0, 3, 5, 0, 3]),
      Buffer.from([0, 0x1e, 0, 2, 65, 0]),
      Buffer.from([4, 0x27, 0, 1, 2]),
    ),
    fc.uint8Array({ maxLength: 12 }),
  )
  const outcomes = new Set<string>()
  await fc.assert(
    fc.asyncProperty(fc.array(field, { maxLength: 24 }), async (fields) => {
      const { promise: answer, resolve: answered } = Promise.withResolvers<Buffer>()
      const socket = new Duplex({
        read() {},
        write(chunk, _encoding, done) {
          answered(chunk)
          done()
        },
      })
      const link = openLink(socket as unknown as Socket, {
        answerMs: 10_000,
        enquireMs: 60_000,
        onDeliver: async (pdu) => void readDelivered(pdu),
      })
      socket.push(frame(Buffer.concat(fields)))
      outcomes.add(
        await Promise.race([answer.then((bytes) => `status ${bytes.readUInt32BE(8)}`), link.ended.then(() => 'ended')]),
      )
      link.end()
    }),
    { numRuns: 1_000 },
  )
  expect(outcomes).toContain('status 0')
  expect(outcomes).not.toContain('status 100')
})
