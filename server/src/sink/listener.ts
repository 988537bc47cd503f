// The sockets of the stand-ins that use HTTP: a real TLS server on loopback, for HTTP/2 and HTTP/1.1, that answers or
// fails as instructed.

import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer as createHttp1Server } from 'node:http'
import type { IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream } from 'node:http2'
import { constants, createSecureServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import type { SecureContext, TLSSocket, TlsOptions } from 'node:tls'
import type { ServerCertificate } from './certificate.ts'
import { pour, trickle } from './garbage.ts'
import type { Reaction, SinkRequest } from './service.ts'

export type ListenerSettings = {
  certificate: ServerCertificate
  /** For names that the certificate does not cover. */
  contextFor?: ((name: string) => SecureContext) | undefined
  port?: number | undefined
  /** The connection's limit once a request was answered; before that, `firstStreams` applies. */
  maxStreams?: number | undefined
  firstStreams?: number | undefined
  isHttp1?: boolean | undefined
  /**
   * Waits until it is the request's turn; resolves to false for a request that will not be answered any more. Defaults
   * to no waiting.
   */
  admit?: ((isGone: () => boolean) => Promise<boolean>) | undefined
  /** Must be synchronous: no request that follows a GOAWAY may be processed in between. */
  handle(request: SinkRequest): Reaction
}

export type SinkListener = {
  port: number
  connections(): number
  /** The number of connections that are open now. */
  open(): number
  mostAtOnce(): number
  close(): Promise<void>
}

const MOST_BODY_BYTES = 1_048_576

export async function listen(settings: ListenerSettings): Promise<SinkListener> {
  const { certificate, contextFor, maxStreams = 1000, firstStreams = maxStreams, isHttp1 = false, admit } = settings
  const sockets = new Set<TLSSocket>()
  /** The last stream that a session processed before its GOAWAY. */
  const goodbyes = new WeakMap<object, number>()
  let connections = 0
  let atOnce = 0
  let mostAtOnce = 0

  const server = createSecureServer({
    ...certificate,
    ...(contextFor && { SNICallback: byName(contextFor) }),
    ALPNCallback: ({ protocols }) => (isHttp1 ? ['http/1.1'] : ['h2', 'http/1.1']).find((it) => protocols.includes(it)),
    requestCert: true,
    rejectUnauthorized: false,
    settings: { maxConcurrentStreams: firstStreams },
  })
  const http1 = createHttp1Server()
  server.on('secureConnection', (socket: TLSSocket) => {
    connections++
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
  })
  server.on('sessionError', () => {})
  server.on('session', (session: ServerHttp2Session) => session.on('error', () => {}))
  server.on('unknownProtocol', (socket: TLSSocket) => http1.emit('connection', socket))

  function decide(body: Buffer | undefined, request: Omit<SinkRequest, 'body'>): Reaction {
    if (!body) return { status: 413 }
    try {
      return settings.handle({ ...request, body })
    } catch {
      // Either the real provider would have had an answer for this case, or the log cannot be written. Nothing was
      // accepted.
      return { status: 500 }
    }
  }

  server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    const { session } = stream
    stream.on('error', () => {})
    atOnce++
    mostAtOnce = Math.max(mostAtOnce, atOnce)
    stream.on('close', () => {
      atOnce--
    })
    collect(stream, async (body) => {
      const isGone = () => stream.destroyed
      if (!session || (admit && !(await admit(isGone)))) return
      if ((stream.id ?? 0) > (goodbyes.get(session) ?? Number.POSITIVE_INFINITY)) return
      const reaction = decide(body, {
        method: String(headers[':method']),
        path: String(headers[':path']),
        headers: headers as Record<string, string | undefined>,
        subject: () => subjectOf(session.socket as TLSSocket),
      })
      if (reaction === 'goaway' || reaction === 'goaway with error') goodbyes.set(session, (stream.id ?? 1) - 2)
      answerStream(stream, reaction)
      if (
        !session.destroyed &&
        firstStreams < maxStreams &&
        session.localSettings.maxConcurrentStreams === firstStreams
      )
        session.settings({ maxConcurrentStreams: maxStreams })
    })
  })
  http1.on('request', (request: IncomingMessage, response: ServerResponse) =>
    collect(request, async (body) => {
      const { method = '', url: path = '', socket } = request
      const headers = request.headers as Record<string, string | undefined>
      if (admit && !(await admit(() => socket.destroyed))) return
      const subject = () => subjectOf(socket as TLSSocket)
      answerHttp1(request, response, decide(body, { method, path, headers, subject }))
    }),
  )

  server.listen(settings.port ?? 0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    open: () => sockets.size,
    mostAtOnce: () => mostAtOnce,
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const byName =
  (contextFor: (name: string) => SecureContext): TlsOptions['SNICallback'] =>
  (name, done) =>
    done(null, contextFor(name))

/** Calls `done` with undefined if the body is larger than anything that is sent here. */
function collect(stream: NodeJS.ReadableStream, done: (body: Buffer | undefined) => void) {
  const chunks: Buffer[] = []
  let bytes = 0
  stream.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes <= MOST_BODY_BYTES) chunks.push(chunk)
  })
  stream.on('end', () => done(bytes <= MOST_BODY_BYTES ? Buffer.concat(chunks) : undefined))
}

function answerStream(stream: ServerHttp2Stream, answer: Reaction) {
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
    case 'trickle':
      stream.respond({ ':status': 200 })
      return void trickle(stream)
    case 'garbage':
      stream.respond({ ':status': 200 })
      return void pour(stream)
    case 'goaway':
      return leave(stream, constants.NGHTTP2_NO_ERROR)
    case 'goaway with error':
      return leave(stream, constants.NGHTTP2_ENHANCE_YOUR_CALM)
    default:
      if (answer.afterMs) {
        const { afterMs, ...later } = answer
        setTimeout(() => answerStream(stream, later), afterMs).unref()
        return
      }
      stream.respond({ ':status': answer.status, ...answer.headers })
      stream.end(answer.body)
  }
}

/**
 * Says that this stream and all later ones were not processed. For the first stream, Node cannot express that by GOAWAY
 * alone.
 */
function leave(stream: ServerHttp2Stream, code: number) {
  const { session, id = 1 } = stream
  if (id === 1) stream.close(constants.NGHTTP2_REFUSED_STREAM)
  session?.goaway(code, id - 2)
}

/** HTTP/1.1 has no streams, so only the connection can be closed. */
function answerHttp1(request: IncomingMessage, response: ServerResponse, answer: Reaction) {
  const { socket } = request
  if (socket.destroyed || answer === 'hang') return
  if (answer === 'half') {
    response.writeHead(200, { 'content-length': '100' }).write('{"na')
    setImmediate(() => socket.destroy())
  } else if (answer === 'trickle') {
    response.writeHead(200).flushHeaders()
    void trickle(response)
  } else if (answer === 'garbage') void pour(response.writeHead(200))
  else if (typeof answer === 'string') socket.destroy()
  else if (answer.afterMs) {
    const { afterMs, ...later } = answer
    setTimeout(() => answerHttp1(request, response, later), afterMs).unref()
  } else response.writeHead(answer.status, answer.headers).end(answer.body)
}

function subjectOf(socket: TLSSocket): Record<string, string> | undefined {
  const { subject } = socket.getPeerCertificate() as { subject?: object }
  return subject && { ...(subject as Record<string, string>) }
}
