// For push services without HTTP/2: several kept-alive connections, each with one request at a time. The client sees
// them as one connection with that many slots.

import { Agent, request as httpsRequest } from 'node:https'
import type { TLSSocket } from 'node:tls'
import { type HttpConnection, MAX_RESPONSE_BYTES } from './connection.ts'
import { lost, type ProviderReply, type ProviderRequest, unsent } from './exchange.ts'
import { describeConnectFailure, type OpenTls } from './open-tls.ts'

const MOST_CONNECTIONS = 32

type Http1ConnectionSettings = { openTls: OpenTls; idleMs: number; onChange(): void }

/** `first` is the connection on which the peer turned out to support only HTTP/1.1. */
export function createHttp1Connection(
  origin: string,
  first: TLSSocket,
  { openTls, idleMs, onChange }: Http1ConnectionSettings,
): HttpConnection {
  const agent = new Agent({ keepAlive: true, timeout: idleMs })
  let spare: TLSSocket | undefined = first
  agent.createConnection = (_options, done) => {
    const socket = spare
    spare = undefined
    if (socket && !socket.destroyed) return socket
    openTls(origin).then(
      (opened) => done?.(null, opened),
      (error) => done?.(new OriginUnreachable(describeConnectFailure(error)), first),
    )
    return undefined
  }
  let inFlight = 0

  return {
    freeSlots: () => MOST_CONNECTIONS - inFlight,
    isOpen: () => true,
    isIdle: () => inFlight === 0,
    allowsAnother: () => false,
    send(request, deadlineMs, done) {
      inFlight++
      post(agent, origin, request, deadlineMs).then((reply) => {
        inFlight--
        done(reply)
        onChange()
      })
    },
    close() {
      spare?.destroy()
      agent.destroy()
    },
  }
}

class OriginUnreachable extends Error {
  readonly reply: ProviderReply
  constructor(reply: ProviderReply) {
    super('unreachable')
    this.reply = reply
  }
}

const post = (agent: Agent, origin: string, { path, headers, body }: ProviderRequest, deadlineMs: number) =>
  new Promise<ProviderReply>((resolve) => {
    let isOnWire = false
    const settle = (reply: ProviderReply) => {
      clearTimeout(timer)
      resolve(reply)
    }
    const request = httpsRequest(`${origin}${path}`, { agent, method: 'POST', headers }, (response) => {
      const { statusCode: status = 0 } = response
      const chunks: Buffer[] = []
      let size = 0
      const answer = () =>
        settle({ kind: 'answer', status, headers: response.headers, body: Buffer.concat(chunks).toString('utf8') })
      response.on('data', (chunk: Buffer) => {
        size += chunk.length
        if (size <= MAX_RESPONSE_BYTES) chunks.push(chunk)
        else {
          answer()
          request.destroy()
        }
      })
      response.on('end', () => (response.complete ? answer() : settle(lost('connection lost'))))
      response.on('error', () => settle(lost('connection lost')))
    })
    const timer = setTimeout(() => {
      settle(isOnWire ? lost('no answer in time') : unsent('time', 'no connection in time'))
      request.destroy()
    }, deadlineMs)
    request.on('socket', () => {
      isOnWire = true
    })
    request.on('error', (error) => {
      if (error instanceof OriginUnreachable) settle(error.reply)
      else settle(isOnWire ? lost('connection lost') : unsent('connection', 'no connection'))
    })
    request.end(body)
  })
