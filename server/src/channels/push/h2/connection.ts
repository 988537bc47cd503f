// One HTTP/2 connection that sends requests with small bodies and reads small answers, on a given socket. It implements
// the part of RFC 9113 that a client of push providers needs. node:http2 does all of that and more, but takes twice the
// time for each request (bench/channels).

import type { Duplex } from 'node:stream'
import { MAX_RESPONSE_BYTES } from '../http/connection.ts'
import { lost, type ProviderReply, unsent } from '../http/exchange.ts'
import { createOutput } from './output.ts'
import { BadFrame, CODE, contentOf, createFrameReader, FLAG, FRAME } from './read-frames.ts'
import { createHeaderReader } from './read-headers.ts'
import { addBody, answerOf, type Stream } from './stream.ts'
import { createHeaderWriter } from './write-headers.ts'

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
const SETTING = { tableSize: 1, enablePush: 2, maxStreams: 3, initialWindow: 4, maxFrame: 5 } as const
const FIRST_WINDOW = 65_535
/** Answers are small: with this window for all of them together, the peer never has to wait for us. */
const OUR_WINDOW = 16 * 1024 * 1024
const MOST_WINDOW = 2 ** 31 - 1
const MOST_HEADER_BYTES = 65_536
const LAST_STREAM = 2 ** 31 - 1

export type Http2Connection = {
  post(request: { path: string; headers: Readonly<Record<string, string>>; body: Buffer }, wanted: Http2Request): void
  inFlight(): number
  /** The peer's limit on concurrent streams; unlimited until the peer has sent its settings. */
  maxStreams(): number
  /** Whether the connection accepts more requests. */
  isOpen(): boolean
  ping(): void
  /** Accepts no more requests, and ends the connection after the last answer. */
  close(): void
  destroy(): void
}
export type Http2Request = { deadlineMs: number; done(reply: ProviderReply): void }

export type Http2ConnectionEvents = {
  /** The peer sent its settings. The first time, requests may begin. */
  onSettings(): void
  /** Any data was received. */
  onSound(): void
  /** The connection accepts no more requests. */
  onLeaving(): void
  onClose(): void
}

export function createHttp2Connection(
  authority: string,
  socket: Duplex,
  events: Http2ConnectionEvents,
): Http2Connection {
  const out = createOutput()
  const writer = createHeaderWriter()
  const readHeaders = createHeaderReader()
  const streams = new Map<number, Stream>()
  /** Streams whose body waits for flow-control window. */
  const waiting = new Set<Stream>()
  const peer = { maxStreams: Number.POSITIVE_INFINITY, initialWindow: FIRST_WINDOW, maxFrame: 16_384 }
  let window = FIRST_WINDOW
  let heardBytes = 0
  let nextId = 1
  let writtenId = 0
  let block: { streamId: number; flags: number; parts: Buffer[]; bytes: number } | undefined
  let isOpen = true
  let isClosed = false
  let isFlushing = false
  let timer: NodeJS.Timeout | undefined

  // Requests from the same turn of the event loop are written together.
  function flushSoon() {
    if (isFlushing) return
    isFlushing = true
    setImmediate(flush)
  }
  function flush() {
    isFlushing = false
    if (isClosed || out.isEmpty()) return
    writtenId = nextId - 2
    socket.write(out.take())
  }

  function frame(type: number, flags: number, streamId: number, ...words: number[]) {
    out.beginFrame(type, flags, streamId)
    for (const word of words) out.uint32(word)
    out.endFrame()
    flushSoon()
  }

  function setting(id: number, value: number) {
    out.byte(id >> 8)
    out.byte(id)
    out.uint32(value)
  }

  function begin() {
    out.body(PREFACE)
    out.beginFrame(FRAME.settings, 0, 0)
    setting(SETTING.enablePush, 0)
    setting(SETTING.initialWindow, MAX_RESPONSE_BYTES)
    out.endFrame()
    frame(FRAME.window, 0, 0, OUR_WINDOW - FIRST_WINDOW)
  }

  function leave() {
    if (!isOpen) return
    isOpen = false
    events.onLeaving()
  }

  function settle(stream: Stream, reply: ProviderReply) {
    streams.delete(stream.id)
    if (stream.unsent) waiting.delete(stream)
    stream.done(reply)
    if (!isOpen && streams.size === 0) end()
  }

  function end() {
    if (isClosed) return
    frame(FRAME.goaway, 0, 0, 0, CODE.none)
    flush()
    socket.end()
  }

  // All requests have the same time limit, so the oldest one expires first.
  function watchDeadlines() {
    const [first] = streams.values()
    timer = first && setTimeout(giveUpLate, Math.max(1, first.deadlineAt - performance.now()))
    timer?.unref()
  }
  function giveUpLate() {
    const now = performance.now()
    for (const stream of streams.values()) {
      if (stream.deadlineAt > now) break
      frame(FRAME.reset, 0, stream.id, CODE.cancel)
      settle(stream, lost('no answer in time'))
    }
    watchDeadlines()
  }

  /** Sends as much of the body as the flow-control windows permit. */
  function sendBody(stream: Stream, body: Buffer) {
    let at = 0
    do {
      const room = Math.min(body.length - at, stream.window, window, peer.maxFrame)
      if (room <= 0 && at < body.length) break
      const isLast = at + room === body.length
      out.beginFrame(FRAME.data, isLast ? FLAG.end : 0, stream.id)
      out.body(at === 0 && isLast ? body : body.subarray(at, at + room))
      out.endFrame()
      at += room
      stream.window -= room
      window -= room
    } while (at < body.length)
    stream.unsent = at < body.length ? body.subarray(at) : undefined
    if (stream.unsent) waiting.add(stream)
    else waiting.delete(stream)
    flushSoon()
  }

  function sendWaiting() {
    for (const stream of waiting) if (window > 0 && stream.unsent) sendBody(stream, stream.unsent)
  }

  function onHeaders(streamId: number, flags: number, bytes: Buffer) {
    // Decoded even if nobody waits for the answer, because later header blocks depend on it.
    const headers = readHeaders(bytes)
    const stream = streams.get(streamId)
    if (!stream) return
    const isEarly = /^1\d\d$/.test(headers[':status'] ?? '') && stream.headers === undefined
    if (!isEarly) stream.headers ??= headers
    if (flags & FLAG.end) settle(stream, answerOf(stream))
  }

  function onBlock(type: number, flags: number, streamId: number, payload: Buffer) {
    if (type === FRAME.headers) {
      const bytes = contentOf(flags, payload, true)
      if (flags & FLAG.endHeaders) return onHeaders(streamId, flags, bytes)
      block = { streamId, flags, parts: [Buffer.from(bytes)], bytes: bytes.length }
      return
    }
    if (block?.streamId !== streamId) throw new BadFrame('headers go on that never began')
    block.parts.push(Buffer.from(payload))
    block.bytes += payload.length
    if (block.bytes > MOST_HEADER_BYTES) throw new BadFrame('headers are too large')
    if (!(flags & FLAG.endHeaders)) return
    const whole = block
    block = undefined
    onHeaders(streamId, whole.flags, Buffer.concat(whole.parts))
  }

  function onData(streamId: number, flags: number, payload: Buffer) {
    heardBytes += payload.length
    if (heardBytes > OUR_WINDOW / 2) {
      frame(FRAME.window, 0, 0, heardBytes)
      heardBytes = 0
    }
    const stream = streams.get(streamId)
    if (!stream) return
    const isWanted = addBody(stream, contentOf(flags, payload, false))
    if (flags & FLAG.end) settle(stream, answerOf(stream))
    else if (!isWanted) {
      frame(FRAME.reset, 0, streamId, CODE.cancel)
      settle(stream, answerOf(stream))
    }
  }

  function onSettings(payload: Buffer) {
    for (let at = 0; at + 6 <= payload.length; at += 6) {
      const [id, value] = [payload.readUInt16BE(at), payload.readUInt32BE(at + 2)]
      if (id === SETTING.tableSize) writer.limit(value)
      else if (id === SETTING.maxStreams) peer.maxStreams = value
      else if (id === SETTING.maxFrame) peer.maxFrame = Math.min(value, 16_384)
      else if (id === SETTING.initialWindow) {
        if (value > MOST_WINDOW) throw new BadFrame('a window is too large')
        for (const stream of streams.values()) stream.window += value - peer.initialWindow
        peer.initialWindow = value
      }
    }
    frame(FRAME.settings, FLAG.ack, 0)
    sendWaiting()
    events.onSettings()
  }

  function onWindow(streamId: number, payload: Buffer) {
    const more = payload.readUInt32BE(0) & MOST_WINDOW
    if (streamId === 0) window = Math.min(window + more, MOST_WINDOW)
    else {
      const stream = streams.get(streamId)
      if (stream) stream.window = Math.min(stream.window + more, MOST_WINDOW)
    }
    if (waiting.size > 0) sendWaiting()
  }

  function onGoaway(payload: Buffer) {
    const lastTaken = payload.readUInt32BE(0) & MOST_WINDOW
    leave()
    for (const stream of streams.values())
      if (stream.id > lastTaken) settle(stream, unsent('stream', 'connection closing'))
    if (streams.size === 0) end()
  }

  function onReset(streamId: number, payload: Buffer) {
    const stream = streams.get(streamId)
    if (!stream) return
    const isRefused = payload.readUInt32BE(0) === CODE.refused
    settle(stream, isRefused ? unsent('stream', 'stream refused') : lost('stream reset'))
  }

  const read = createFrameReader((type, flags, streamId, payload) => {
    if (block && type !== FRAME.continuation) throw new BadFrame('headers are broken off')
    if (type === FRAME.headers || type === FRAME.continuation) onBlock(type, flags, streamId, payload)
    else if (type === FRAME.data) onData(streamId, flags, payload)
    else if (type === FRAME.reset) onReset(streamId, payload)
    else if (type === FRAME.window) onWindow(streamId, payload)
    else if (type === FRAME.settings) {
      if (!(flags & FLAG.ack)) onSettings(payload)
    } else if (type === FRAME.ping) {
      if (!(flags & FLAG.ack)) frame(FRAME.ping, FLAG.ack, 0, payload.readUInt32BE(0), payload.readUInt32BE(4))
    } else if (type === FRAME.goaway) onGoaway(payload)
    else if (type === FRAME.push) throw new BadFrame('nobody asked for that')
  })

  function onClose() {
    if (isClosed) return
    isClosed = true
    clearTimeout(timer)
    leave()
    for (const stream of streams.values())
      settle(stream, stream.id > writtenId ? unsent('stream', 'connection closing') : lost('connection lost'))
    events.onClose()
  }

  socket.on('data', (chunk: Buffer) => {
    events.onSound()
    try {
      read(chunk)
    } catch {
      // The peer violated the protocol, so nothing after this can be interpreted.
      socket.destroy()
    }
  })
  socket.on('end', () => socket.destroy())
  socket.on('close', onClose)
  socket.on('error', () => {})
  begin()

  return {
    post({ path, headers, body }, { deadlineMs, done }) {
      const id = nextId
      nextId += 2
      if (nextId >= LAST_STREAM) leave()
      const deadlineAt = performance.now() + deadlineMs
      const stream: Stream = {
        id,
        deadlineAt,
        unsent: undefined,
        window: peer.initialWindow,
        headers: undefined,
        body: undefined,
        done,
      }
      streams.set(id, stream)
      out.beginFrame(FRAME.headers, FLAG.endHeaders, id)
      writer.post(out, authority, path, headers, body.length)
      out.endFrame()
      sendBody(stream, body)
      if (timer === undefined) watchDeadlines()
    },
    inFlight: () => streams.size,
    maxStreams: () => peer.maxStreams,
    isOpen: () => isOpen && !isClosed,
    ping: () => frame(FRAME.ping, 0, 0, 0, 0),
    close() {
      leave()
      if (streams.size === 0) end()
    },
    destroy: () => socket.destroy(),
  }
}
