// A receiver on loopback that answers as it is told, and fails as it is told.

import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'

export type Received = { method: string; path: string; headers: IncomingHttpHeaders; body: string; from: string }

export type Answer =
  | { status: number; headers?: Record<string, string>; body?: string }
  /** Reads all of it, and resets the connection. */
  | 'reset'
  /** Reads all of it, and stops in the middle of its answer. */
  | 'half'
  /** Reads all of it, and says nothing for ever. */
  | 'silent'

export type HttpSink = {
  url: string
  port: number
  received: Received[]
  /** Connections since the beginning. */
  connections(): number
  stop(): Promise<void>
}

export type HttpSinkSettings = { tls?: { key: string; cert: string }; host?: string }

export async function startHttpSink(
  answer: (request: Received) => Answer | Promise<Answer>,
  { tls, host = '127.0.0.1' }: HttpSinkSettings = {},
): Promise<HttpSink> {
  const received: Received[] = []
  const sockets = new Set<Socket>()
  let connections = 0
  const listener: RequestListener = async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { method = '', url = '', headers, socket } = request
    const entry = {
      method,
      path: url,
      headers,
      body: Buffer.concat(chunks).toString(),
      from: socket.remoteAddress ?? '',
    }
    received.push(entry)
    const told = await answer(entry)
    if (told === 'reset') socket.resetAndDestroy()
    else if (told === 'half') {
      response.writeHead(200, { 'content-length': '100' }).write('{"sid":')
      setImmediate(() => socket.destroy())
    } else if (told !== 'silent') response.writeHead(told.status, told.headers).end(told.body)
  }
  const server = tls ? createTlsServer(tls, listener) : createServer(listener)
  server.on('connection', (socket) => {
    connections++
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('tlsClientError', () => {})
  server.listen(0, host)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`,
    port,
    received,
    connections: () => connections,
    async stop() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
