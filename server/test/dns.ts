// A DNS server on loopback that knows what a test tells it (RFC 1035, over UDP).

import { createSocket } from 'node:dgram'
import { once } from 'node:events'

export type Zone = {
  txt?: string[]
  mx?: { priority: number; exchange: string }[]
  cname?: string
  a?: string[]
}

export type TestDns = {
  /** For the setting RESOLVER. */
  address: string
  /** What is known of each name, in lower case. Change it as you like. */
  zones: Map<string, Zone>
  /** Names that nobody answers for. */
  silent: Set<string>
  /** Names that the server fails for. */
  failing: Set<string>
  /** Questions so far, as `TXT example.com`. */
  asked: string[]
  set(name: string, zone: Zone): void
  close(): Promise<void>
}

const TYPES: Record<number, 'A' | 'CNAME' | 'MX' | 'TXT' | 'AAAA'> = {
  1: 'A',
  5: 'CNAME',
  15: 'MX',
  16: 'TXT',
  28: 'AAAA',
}
const CNAME = 5
const SERVFAIL = 2
const NXDOMAIN = 3

export async function startDns(): Promise<TestDns> {
  const socket = createSocket('udp4')
  const dns: Omit<TestDns, 'address' | 'close'> = {
    zones: new Map(),
    silent: new Set(),
    failing: new Set(),
    asked: [],
    set: (name, zone) => dns.zones.set(name.toLowerCase(), zone),
  }
  socket.on('message', (query, { port, address }) => {
    const { name, type, end } = readQuestion(query)
    dns.asked.push(`${TYPES[type] ?? type} ${name}`)
    if (dns.silent.has(name)) return
    const zone = dns.zones.get(name)
    const records = zone ? recordsOf(dns.zones, zone, type) : []
    const code = dns.failing.has(name) ? SERVFAIL : zone ? 0 : NXDOMAIN
    socket.send(answerOf(query.subarray(0, end), code, records), port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return Object.assign(dns, {
    address: `127.0.0.1:${socket.address().port}`,
    async close() {
      socket.close()
      await once(socket, 'close')
    },
  })
}

function readQuestion(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = []
  let at = 12
  for (let length = query[at++] ?? 0; length > 0; length = query[at++] ?? 0) {
    labels.push(query.subarray(at, at + length).toString('latin1'))
    at += length
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at), end: at + 4 }
}

type Resource = { type: number; data: Buffer }

/** One that is another name answers with that, and with what is asked for of it. */
function recordsOf(zones: Map<string, Zone>, zone: Zone, type: number): Resource[] {
  if (zone.cname !== undefined) {
    const target = zones.get(zone.cname.toLowerCase())
    const alias = { type: CNAME, data: nameOf(zone.cname) }
    return type === CNAME || !target ? [alias] : [alias, ...recordsOf(zones, target, type)]
  }
  const kind = TYPES[type]
  if (kind === 'TXT') return (zone.txt ?? []).map((text) => ({ type, data: textOf(text) }))
  if (kind === 'MX')
    return (zone.mx ?? []).map(({ priority, exchange }) => {
      const head = Buffer.alloc(2)
      head.writeUInt16BE(priority)
      return { type, data: Buffer.concat([head, nameOf(exchange)]) }
    })
  if (kind === 'A') return (zone.a ?? []).map((it) => ({ type, data: Buffer.from(it.split('.').map(Number)) }))
  return []
}

/** In pieces of 255 bytes, as every record of a key is. */
function textOf(text: string): Buffer {
  const bytes = Buffer.from(text)
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length || at === 0; at += 255) {
    const piece = bytes.subarray(at, at + 255)
    pieces.push(Buffer.from([piece.length]), piece)
  }
  return Buffer.concat(pieces)
}

const nameOf = (name: string) =>
  Buffer.concat([
    ...name
      .split('.')
      .filter(Boolean)
      .flatMap((label) => [Buffer.from([label.length]), Buffer.from(label)]),
    Buffer.from([0]),
  ])

const TTL = Buffer.from([0, 0, 0, 0])

function answerOf(question: Buffer, code: number, records: readonly Resource[]): Buffer {
  const head = Buffer.from(question)
  // An answer of a server that asks others, to a question that wanted it.
  head.writeUInt16BE(0x8180 | code, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(records.length, 6)
  head.writeUInt32BE(0, 8)
  return Buffer.concat([
    head,
    ...records.map(({ type, data }) => {
      const fixed = Buffer.alloc(4)
      fixed.writeUInt16BE(type)
      fixed.writeUInt16BE(1, 2)
      const length = Buffer.alloc(2)
      length.writeUInt16BE(data.length)
      // The name is that of the question.
      return Buffer.concat([Buffer.from([0xc0, 12]), fixed, TTL, length, data])
    }),
  ])
}
