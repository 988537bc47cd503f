// The other side: takes everything, and costs as little as it can. A process of its own, so that its work is nobody's.

import { createSecureServer } from 'node:http2'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { certificateFor } from '../../server/src/sink/certificate.ts'

export type Sinks = { h2: number; h1: number; ca: string }

const { key, cert } = certificateFor('api.push.apple.com', 'push.example.com')

const h2 = createSecureServer({ key, cert, settings: { maxConcurrentStreams: 1000 } })
h2.on('stream', (stream, headers) => {
  stream.on('error', () => {})
  stream.resume()
  const isApns = headers[':path']?.startsWith('/3/device/')
  stream.on('end', () => stream.respond({ ':status': isApns ? 200 : 201 }, { endStream: true }))
})
const h1 = createServer({ key, cert }, (request, response) => {
  request.resume()
  request.on('end', () => response.writeHead(201).end())
})

const portOf = async (server: typeof h2 | typeof h1) => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}
process.send?.({ h2: await portOf(h2), h1: await portOf(h1), ca: cert } satisfies Sinks)
