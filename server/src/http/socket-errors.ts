// Answers requests that Node cannot parse: the answer is written to the socket by hand, as JSON like all others.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { ownProperty } from '../lib/own-property.ts'
import { JSON_TYPE } from './answer.ts'

type Refusal = { status: string; title: string }

const REFUSALS: Record<string, Refusal> = {
  ERR_HTTP_REQUEST_TIMEOUT: { status: '408 Request Timeout', title: 'The request took too long to arrive' },
  HPE_HEADER_OVERFLOW: {
    status: '431 Request Header Fields Too Large',
    title: 'The headers of the request are too large',
  },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { status: '413 Payload Too Large', title: 'The body is too large' },
}
const MALFORMED: Refusal = { status: '400 Bad Request', title: 'The request is not valid HTTP' }

type AnsweringSocket = Socket & { _httpMessage?: { _headerSent?: boolean } | null }

export function refuseOnSocket(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return
  // During an answer, another status line would be read as part of its body.
  const isAnswering = (socket as AnsweringSocket)._httpMessage?._headerSent === true
  if (!socket.writable || isAnswering) {
    socket.destroy()
    return
  }
  const { status, title } = ownProperty(REFUSALS, error.code ?? '') ?? MALFORMED
  const body = JSON.stringify({ errors: [title] })
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: ${JSON_TYPE}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` +
      `Connection: close\r\n\r\n${body}`,
  )
  // The other side may write forever; the answer has been handed to the socket by now.
  socket.once('finish', () => socket.destroySoon())
}

/** Node would answer an unknown `Expect` header with an empty 417. */
export function refuseExpectation(_request: IncomingMessage, response: ServerResponse): void {
  const body = JSON.stringify({ errors: ['The Expect header asks for something unknown'] })
  response.writeHead(417, { 'content-type': JSON_TYPE, 'content-length': Buffer.byteLength(body) }).end(body)
}
