// APNs as the benchmark needs it: takes everything, costs as little as it can, and remembers when what was named arrived.
// A process of its own, so that its work is nobody's.

import { createSecureServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { certificateFor } from '../../server/src/sink/certificate.ts'
import { moment } from '../kit/moment.ts'

/** The server's settings that lead here. */
export type SinkStarted = { settings: Record<string, string> }

/** The device is the last part of the path. */
export type SinkNames = 'collapse id' | 'device'

/** How many arrived that have a name, how many others, and when the last of these did. */
export type SinkSeen = { count: number; lastMs: number; namedCount: number }

/** By its name, when each arrived. There can be many: asked for when all are there. */
export type SinkNamed = Record<string, number>

export type SinkQuestion = { wants: 'counts' | 'named' }

const byDevice = (process.argv[2] as SinkNames) === 'device'
const seen = { count: 0, lastMs: 0 }
const named = new Map<string, number>()

const { key, cert } = certificateFor('api.push.apple.com')
const server = createSecureServer({ key, cert, settings: { maxConcurrentStreams: 1000 } })
server.on('stream', (stream, headers) => {
  stream.on('error', () => {})
  stream.resume()
  stream.on('end', () => {
    const name = byDevice ? headers[':path']?.split('/').at(-1) : headers['apns-collapse-id']
    if (name) named.set(String(name), moment())
    else {
      seen.count++
      seen.lastMs = moment()
    }
    stream.respond({ ':status': 200 }, { endStream: true })
  })
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const { port } = server.address() as AddressInfo

process.on('message', ({ wants }: SinkQuestion) => {
  const counts = (): SinkSeen => ({ ...seen, namedCount: named.size })
  process.send?.(wants === 'named' ? Object.fromEntries(named) : counts())
})
process.send?.({
  settings: { PROVIDER_CA: cert, PROVIDER_CONNECT: `https://*=127.0.0.1:${port}` },
} satisfies SinkStarted)
