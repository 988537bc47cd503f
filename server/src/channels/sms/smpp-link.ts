// One bound connection to a message centre. It ends once, for any reason, and then reports for each pending request
// whether it had been written.

import type { Socket } from 'node:net'
import smpp, { type PDU } from 'smpp'

export type SmppLinkSettings = {
  /** The time limit for an answer. */
  answerMs: number
  /** How often the centre is asked whether it is still there. */
  enquireMs: number
  /** Called for each deliver_sm. If it rejects, the centre is asked to retry later. */
  onDeliver(pdu: PDU): Promise<void>
}

export type SmppResponse = { kind: 'answer'; pdu: PDU } | { kind: 'unwritten' } | { kind: 'unanswered'; reason: string }

export type SmppLink = {
  /** Never rejects. */
  ask(command: string, fields: Record<string, unknown>): Promise<SmppResponse>
  /** Resolves when the connection has ended. */
  ended: Promise<void>
  end(): void
}

const TRY_LATER = 0x64
const MOST_SEQUENCE = 0x7fffffff

type PendingPdu = { settle(reply: SmppResponse): void; isWritten: boolean }

export function openLink(socket: Socket, { answerMs, enquireMs, onDeliver }: SmppLinkSettings): SmppLink {
  const pending = new Map<number, PendingPdu>()
  const { promise: ended, resolve: markEnded } = Promise.withResolvers<void>()
  let sequence = 0
  let isOpen = true

  const session = new smpp.Session({ socket })
  session.on('pdu', (pdu: PDU) => {
    if (pdu.isResponse()) pending.get(pdu.sequence_number)?.settle({ kind: 'answer', pdu })
    else answer(pdu).catch(end)
  })
  // Either the bytes are not SMPP or the network failed; in both cases the connection is of no more use.
  session.on('error', end)
  session.on('close', end)
  const heartbeat = setInterval(async () => {
    if ((await ask('enquire_link', {})).kind !== 'answer') end()
  }, enquireMs)
  heartbeat.unref()

  function end() {
    if (!isOpen) return
    isOpen = false
    clearInterval(heartbeat)
    socket.destroy()
    for (const { settle, isWritten } of [...pending.values()])
      settle(isWritten ? { kind: 'unanswered', reason: 'connection lost' } : { kind: 'unwritten' })
    markEnded()
  }

  function ask(command: string, fields: Record<string, unknown>): Promise<SmppResponse> {
    if (!isOpen) return Promise.resolve({ kind: 'unwritten' })
    sequence = sequence === MOST_SEQUENCE ? 1 : sequence + 1
    const bytes = new smpp.PDU(command, { ...fields, sequence_number: sequence }).toBuffer()
    const key = sequence
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        // Not even handed to the operating system yet: the connection is closed so that the rest cannot be sent later.
        if (entry.isWritten) entry.settle({ kind: 'unanswered', reason: 'timeout' })
        else end()
      }, answerMs)
      const entry: PendingPdu = {
        isWritten: false,
        settle(reply) {
          clearTimeout(timer)
          pending.delete(key)
          resolve(reply)
        },
      }
      pending.set(key, entry)
      socket.write(bytes, (error) => {
        if (!error) entry.isWritten = true
      })
    })
  }

  async function answer(pdu: PDU) {
    if (pdu.command === 'deliver_sm') {
      const status = await onDeliver(pdu).then(
        () => 0,
        () => TRY_LATER,
      )
      write(pdu.response({ command_status: status }))
      return
    }
    // A client handles no other commands.
    write(pdu.command === 'enquire_link' || pdu.command === 'unbind' ? pdu.response() : refuse(pdu))
    if (pdu.command === 'unbind') socket.end(end)
  }

  function write(pdu: PDU) {
    if (isOpen) socket.write(pdu.toBuffer())
  }

  return { ask, ended, end }
}

const INVALID_COMMAND = 0x03

const refuse = (pdu: PDU) =>
  new smpp.PDU('generic_nack', { command_status: INVALID_COMMAND, sequence_number: pdu.sequence_number })
