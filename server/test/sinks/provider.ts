// What the stand-ins of push providers have in common: a real HTTP/2 server over TLS on loopback that records what it
// accepts, judges as the real one does, and fails as it is told.

import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  constants,
  createSecureServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import { createServer as createHttp1Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { Route } from '../../src/channels/channel.ts'
import { certificateFor } from './certificate.ts'

export type SinkRequest = {
  method: string
  path: string
  headers: Record<string, string | undefined>
  body: Buffer
  /** The certificate that the client showed, if any. */
  subject: Record<string, string> | undefined
}
/** `afterMs` for one that is slow. */
export type SinkAnswer = { status: number; headers?: Record<string, string>; body?: string; afterMs?: number }

/** How a request goes wrong. `accepted` failures happen after the provider took the message up. */
export type Failure =
  | SinkAnswer
  /** Taken up, and never answered. */
  | 'hang'
  /** Taken up; then the stream is reset, or the connection cut, instead of an answer. */
  | 'reset'
  | 'cut'
  /** Taken up; half an answer, then the connection is cut. */
  | 'half'
  /** Not taken up. */
  | 'refuse'
  /** Not taken up: the connection is closed for this stream and all after it; with an error for those before it as well. */
  | 'goaway'
  | 'goaway with error'

export type ProviderSettings = {
  hosts: readonly string[]
  /** Of the connection, once a request was answered; before that `firstStreams`. */
  maxStreams?: number
  firstStreams?: number
  isHttp1?: boolean
  /** Undefined where the real one would take it: then it is recorded. */
  judge(request: SinkRequest): SinkAnswer | undefined
  accept(request: SinkRequest): SinkAnswer
  /** Which address a request is for, for the script. */
  addressOf(request: SinkRequest): string
}

export type Provider = {
  route: Route
  port: number
  /** The next requests for this address go wrong in this way, one after the other. */
  script(address: string, ...failures: Failure[]): void
  /** How many requests came, whatever became of them. */
  requests(): number
  /** How many requests for each address were taken up, answered or not. */
  taken: Map<string, number>
  connections(): number
  /** Connections that are open now. */
  open(): number
  mostAtOnce(): number
  close(): Promise<void>
}

export async function startProvider(settings: ProviderSettings): Promise<Provider> {
  const { hosts, maxStreams = 1000, firstStreams = maxStreams, isHttp1 = false } = settings
  const { key, cert } = certificateFor(...hosts)
  const scripts = new Map<string, Failure[]>()
  const taken = new Map<string, number>()
  const sockets = new Set<TLSSocket>()
  /** The last stream that a session took up, once it has said goodbye. */
  const goodbyes = new Map<unknown, number>()
  let requests = 0
  let connections = 0
  let atOnce = 0
  let mostAtOnce = 0

  const server = isHttp1
    ? createHttp1Server({ key, cert })
    : createSecureServer({
        key,
        cert,
        requestCert: true,
        rejectUnauthorized: false,
        settings: { maxConcurrentStreams: firstStreams },
      })
  server.on('secureConnection', (socket: TLSSocket) => {
    connections++
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
  })
  server.on('sessionError', () => {})
  server.on('session', (session: ServerHttp2Session) => session.on('error', () => {}))

  function decide(request: SinkRequest): Failure {
    requests++
    const address = settings.addressOf(request)
    const failure = scripts.get(address)?.shift()
    if (failure === 'refuse' || failure === 'goaway' || failure === 'goaway with error' || typeof failure === 'object')
      return failure
    const refused = settings.judge(request)
    if (refused) return refused
    taken.set(address, (taken.get(address) ?? 0) + 1)
    const answer = settings.accept(request)
    return failure ?? answer
  }

  server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    stream.on('error', () => {})
    atOnce++
    mostAtOnce = Math.max(mostAtOnce, atOnce)
    stream.on('close', () => {
      atOnce--
    })
    const chunks: Buffer[] = []
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.on('end', () => {
      if ((stream.id ?? 0) > (goodbyes.get(stream.session) ?? Number.POSITIVE_INFINITY)) return
      const socket = stream.session?.socket as TLSSocket | undefined
      const answer = decide({
        method: String(headers[':method']),
        path: String(headers[':path']),
        headers: headers as Record<string, string | undefined>,
        body: Buffer.concat(chunks),
        subject: socket && subjectOf(socket),
      })
      if (answer === 'goaway' || answer === 'goaway with error') goodbyes.set(stream.session, (stream.id ?? 1) - 2)
      answerStream(stream, answer)
      if (stream.session?.localSettings.maxConcurrentStreams === firstStreams && firstStreams < maxStreams)
        stream.session.settings({ maxConcurrentStreams: maxStreams })
    })
  })
  if (isHttp1)
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const headers = request.headers as Record<string, string | undefined>
        const { method = '', url: path = '' } = request
        const answer = decide({ method, path, headers, body: Buffer.concat(chunks), subject: undefined })
        if (answer === 'hang') return
        if (typeof answer === 'string') return void request.socket.destroy()
        response.writeHead(answer.status, answer.headers)
        response.end(answer.body ?? '')
      })
    })

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    route: {
      ca: cert,
      connect: Object.fromEntries(hosts.map((host) => [`https://${host}`, { host: '127.0.0.1', port }])),
    },
    script: (address, ...failures) => scripts.set(address, [...(scripts.get(address) ?? []), ...failures]),
    requests: () => requests,
    taken,
    connections: () => connections,
    open: () => sockets.size,
    mostAtOnce: () => mostAtOnce,
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function answerStream(stream: ServerHttp2Stream, answer: Failure) {
  if (stream.destroyed) return
  switch (answer) {
    case 'hang':
      return
    case 'reset':
      return stream.close(constants.NGHTTP2_INTERNAL_ERROR)
    case 'refuse':
      return stream.close(constants.NGHTTP2_REFUSED_STREAM)
    case 'cut':
      return void stream.session?.socket.destroy()
    case 'half':
      stream.respond({ ':status': 200, 'content-type': 'application/json' })
      stream.write('{"na', () => setImmediate(() => stream.session?.socket.destroy()))
      return
    case 'goaway':
      return stream.session?.goaway(constants.NGHTTP2_NO_ERROR, (stream.id ?? 1) - 2)
    case 'goaway with error':
      return stream.session?.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM, (stream.id ?? 1) - 2)
    default:
      if (answer.afterMs) {
        const { afterMs, ...later } = answer
        setTimeout(() => answerStream(stream, later), afterMs)
        return
      }
      stream.respond({ ':status': answer.status, ...answer.headers })
      stream.end(answer.body)
  }
}

function subjectOf(socket: TLSSocket): Record<string, string> | undefined {
  const { subject } = socket.getPeerCertificate() as { subject?: object }
  return subject && { ...(subject as Record<string, string>) }
}
