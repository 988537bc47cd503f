// Splits the bytes from the socket into frames (RFC 9113).

export const FRAME = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  push: 5,
  ping: 6,
  goaway: 7,
  window: 8,
  continuation: 9,
} as const

export const FLAG = { end: 0x1, ack: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 } as const

export const CODE = { none: 0, protocol: 1, refused: 7, cancel: 8 } as const

const HEAD_BYTES = 9
/** The largest frame. We never allow more than this default of the protocol. */
const MOST_BYTES = 16_384

export class BadFrame extends Error {}

export type OnFrame = (type: number, flags: number, streamId: number, payload: Buffer) => void

export function createFrameReader(onFrame: OnFrame): (chunk: Buffer) => void {
  let rest: Buffer | undefined
  return (chunk) => {
    const bytes = rest ? Buffer.concat([rest, chunk]) : chunk
    let at = 0
    while (bytes.length - at >= HEAD_BYTES) {
      const length = bytes.readUIntBE(at, 3)
      if (length > MOST_BYTES) throw new BadFrame('a frame is too large')
      const end = at + HEAD_BYTES + length
      if (end > bytes.length) break
      const streamId = bytes.readUInt32BE(at + 5) & 0x7fffffff
      onFrame(bytes[at + 3] as number, bytes[at + 4] as number, streamId, bytes.subarray(at + HEAD_BYTES, end))
      at = end
    }
    rest = at < bytes.length ? bytes.subarray(at) : undefined
  }
}

/** Strips the padding and the deprecated priority fields. */
export function contentOf(flags: number, payload: Buffer, mayHavePriority: boolean): Buffer {
  let from = 0
  let until = payload.length
  if (flags & FLAG.padded) {
    from = 1
    until -= payload[0] ?? 0
  }
  if (mayHavePriority && flags & FLAG.priority) from += 5
  if (from > until) throw new BadFrame('a frame is shorter than its padding')
  return payload.subarray(from, until)
}
