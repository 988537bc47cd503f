// A message centre on loopback, made of the package `smpp`. Which numbers fail, and how, is told at the start; all others are
// taken, and reported as delivered where a report is asked for.

import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import smpp, { type PDU, type Session } from 'smpp'

/** A command status to refuse with; or read it and hang up; or read it and say nothing. */
export type SmppFate = number | 'hang-up' | 'silent' | Promise<0>

export type SmppSinkSettings = {
  systemId: string
  password: string
  fates?: Readonly<Record<string, SmppFate>>
  /** The words of `stat:` in reports, by number. */
  states?: Readonly<Record<string, string>>
  tls?: { key: string; cert: string }
}

export type SmppSink = {
  port: number
  submitted: PDU[]
  binds: PDU[]
  enquiries(): number
  /** Bound sessions at this moment. */
  sessions: Set<Session>
  /** Hands a deliver_sm to whoever is bound, and tells the status of the answer. */
  deliver(fields: Record<string, unknown>): Promise<number>
  stop(): Promise<void>
}

export async function startSmppSink(settings: SmppSinkSettings): Promise<SmppSink> {
  const { systemId, password, fates = {}, states = {}, tls = {} } = settings
  const submitted: PDU[] = []
  const binds: PDU[] = []
  const sessions = new Set<Session>()
  const open = new Set<Session>()
  const awaited = new Map<number, (status: number) => void>()
  let enquiries = 0
  let sequence = 0

  function deliver(session: Session, fields: Record<string, unknown>): Promise<number> {
    const pdu = new smpp.PDU('deliver_sm', { ...fields, sequence_number: ++sequence })
    session.send(pdu)
    return new Promise((resolve) => awaited.set(sequence, resolve))
  }

  async function take(session: Session, pdu: PDU) {
    submitted.push(pdu)
    const id = `m${submitted.length}`
    const to = pdu.destination_addr ?? ''
    const fate = await (fates[`+${to}`] ?? 0)
    if (fate === 'hang-up') session.socket.destroy()
    if (typeof fate !== 'number') return
    session.send(pdu.response(fate === 0 ? { message_id: id } : { command_status: fate }))
    if (fate !== 0 || !pdu.registered_delivery) return
    const text = `id:${id} sub:001 dlvrd:001 submit date:2601010000 done date:2601010001 stat:${states[`+${to}`] ?? 'DELIVRD'} err:000 text:`
    deliver(session, { source_addr: to, esm_class: 4, short_message: Buffer.from(text), data_coding: 0 })
  }

  const server = smpp.createServer(tls, (session) => {
    open.add(session)
    session.on('error', () => {})
    session.on('close', () => {
      open.delete(session)
      sessions.delete(session)
    })
    session.on('pdu', (pdu: PDU) => {
      if (pdu.command === 'bind_transceiver') {
        binds.push(pdu)
        const status = pdu.system_id !== systemId ? 0x0f : pdu.password !== password ? 0x0e : 0
        if (status === 0) sessions.add(session)
        session.send(pdu.response(status === 0 ? { system_id: 'sink' } : { command_status: status }))
      } else if (pdu.command === 'submit_sm') take(session, pdu)
      else if (pdu.command === 'enquire_link') {
        enquiries++
        session.send(pdu.response())
      } else if (pdu.command === 'unbind') {
        session.send(pdu.response())
        session.socket.end()
      } else if (pdu.command === 'deliver_sm_resp') awaited.get(pdu.sequence_number)?.(pdu.command_status)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    submitted,
    binds,
    sessions,
    enquiries: () => enquiries,
    deliver(fields) {
      const [session] = sessions
      if (!session) throw new Error('nobody is bound')
      return deliver(session, fields)
    },
    async stop() {
      for (const session of open) session.socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
