import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { expect, test } from 'vitest'
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
