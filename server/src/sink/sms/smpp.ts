// A message centre on loopback, based on the package `smpp`. It reports SMS as delivered if a report is requested.

import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import smpp, { type PDU, type Session } from 'smpp'
import { pour } from '../garbage.ts'
import type { RefusalName } from '../service.ts'

/**
 * A command status, with 0 for accepted. `cut`, `hang` and `garbage` accept the SMS and then close the connection,
 * never answer, or send nonsense.
 */
export type SmppVerdict = number | 'cut' | 'hang' | 'garbage'

export type SmppServerSettings = {
  /** Returns the status of a sign-in. By default, everybody is let in. */
  signIn?: ((bind: PDU) => number) | undefined
  take(submitted: PDU): SmppVerdict | Promise<SmppVerdict>
  onEnquiry?: (() => void) | undefined
  /** Returns the word after `stat:` in the report about an SMS to this number. */
  stateOf?: ((to: string) => string | undefined) | undefined
  tls?: { key: string; cert: string } | undefined
  port?: number | undefined
}

export type MessageCentre = {
  port: number
  /** The sessions that are bound now. */
  sessions: Set<Session>
  /** The number of connections that are open now. */
  open(): number
  /** Sends a deliver_sm to a bound client, and returns the status of its answer. */
  deliver(fields: Record<string, unknown>): Promise<number>
  close(): Promise<void>
}

export const SMPP_REFUSALS: Record<RefusalName, number> = { unavailable: 0x08, rate_limited: 0x58, gone: 0x0b }

export async function listenSmpp(settings: SmppServerSettings): Promise<MessageCentre> {
  const { signIn = () => 0, take, onEnquiry = () => {}, stateOf = () => undefined, tls = {}, port = 0 } = settings
  const sessions = new Set<Session>()
  const open = new Set<Session>()
  const awaited = new Map<number, (status: number) => void>()
  let sequence = 0
  let taken = 0

  function deliver(session: Session, fields: Record<string, unknown>): number {
    session.send(new smpp.PDU('deliver_sm', { ...fields, sequence_number: ++sequence }))
    return sequence
  }

  async function answer(session: Session, pdu: PDU) {
    const id = `m${++taken}`
    const verdict = await take(pdu)
    if (verdict === 'cut') session.socket.destroy()
    if (verdict === 'garbage') void pour(session.socket)
    if (typeof verdict !== 'number' || session.socket.destroyed) return
    session.send(pdu.response(verdict === 0 ? { message_id: id } : { command_status: verdict }))
    if (verdict !== 0 || !pdu.registered_delivery) return
    const to = pdu.destination_addr ?? ''
    const state = stateOf(`+${to}`) ?? 'DELIVRD'
    const text = `id:${id} sub:001 dlvrd:001 submit date:2601010000 done date:2601010001 stat:${state} err:000 text:`
    deliver(session, { source_addr: to, esm_class: 4, short_message: Buffer.from(text), data_coding: 0 })
  }

  function onPdu(session: Session, pdu: PDU) {
    if (pdu.command.startsWith('bind_') && !pdu.isResponse()) {
      const status = signIn(pdu)
      if (status === 0) sessions.add(session)
      session.send(pdu.response(status === 0 ? { system_id: 'sink' } : { command_status: status }))
    } else if (pdu.command === 'submit_sm') answer(session, pdu).catch(() => session.socket.destroy())
    else if (pdu.command === 'enquire_link') {
      onEnquiry()
      session.send(pdu.response())
    } else if (pdu.command === 'unbind') {
      session.send(pdu.response())
      session.socket.end()
    } else if (pdu.command === 'deliver_sm_resp') {
      awaited.get(pdu.sequence_number)?.(pdu.command_status)
      awaited.delete(pdu.sequence_number)
    }
  }

  const server = smpp.createServer(tls, (session) => {
    open.add(session)
    session.on('error', () => {})
    session.on('close', () => {
      open.delete(session)
      sessions.delete(session)
    })
    session.on('pdu', (pdu: PDU) => onPdu(session, pdu))
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    sessions,
    open: () => open.size,
    deliver(fields) {
      const [session] = sessions
      if (!session) throw new Error('nobody is bound')
      return new Promise((resolve) => awaited.set(deliver(session, fields), resolve))
    },
    async close() {
      for (const session of open) session.socket.destroy()
      if (!server.listening) return
      server.close()
      await once(server, 'close')
    },
  }
}
