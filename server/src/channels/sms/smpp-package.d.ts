// Types for the part of the package `smpp` that we use; it has none of its own.

declare module 'smpp' {
  import type { EventEmitter } from 'node:events'
  import type { Server as NetServer, Socket } from 'node:net'

  /** A decoded text: a string if the package knows the alphabet, otherwise bytes. */
  type Text = { message: string | Buffer; udh?: Buffer[] }

  class PDU {
    constructor(command: string, fields?: Record<string, unknown>)
    command: string
    command_status: number
    sequence_number: number
    system_id?: string
    password?: string
    message_id?: string
    source_addr?: string
    destination_addr?: string
    esm_class?: number
    data_coding?: number
    registered_delivery?: number
    source_addr_ton?: number
    source_addr_npi?: number
    short_message?: Text
    message_payload?: Text
    receipted_message_id?: string
    message_state?: number
    isResponse(): boolean
    response(fields?: Record<string, unknown>): PDU
    toBuffer(): Buffer
  }

  /** Reads PDUs from a socket, and emits each as `pdu`. */
  class Session extends EventEmitter {
    constructor(options: { socket: Socket })
    socket: Socket
    send(pdu: PDU): boolean
  }

  const smpp: {
    PDU: typeof PDU
    Session: typeof Session
    createServer(options: { key?: string; cert?: string }, listener: (session: Session) => void): NetServer
    encodings: Record<'ASCII' | 'UCS2', { decode(bytes: Buffer): string }>
  }

  export { PDU, Session, Text }
  export default smpp
}
