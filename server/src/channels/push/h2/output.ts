// The output buffer. Frames of many requests are appended to it and go to the socket in one write.

const LEAST_BYTES = 4_096

export type Output = {
  byte(value: number): void
  /**
   * Writes an HPACK integer: in the low bits of a byte that begins with `first`, and in as many more bytes as it needs.
   */
  integer(first: number, bits: number, value: number): void
  /** Writes an HPACK string without Huffman coding, one byte per character. */
  text(value: string): void
  body(bytes: Buffer): void
  uint32(value: number): void
  /** Writes the head of a frame; `endFrame` fills in its length. */
  beginFrame(type: number, flags: number, streamId: number): void
  endFrame(): void
  isEmpty(): boolean
  take(): Buffer
}

export function createOutput(): Output {
  let buffer = Buffer.allocUnsafeSlow(LEAST_BYTES)
  let at = 0
  let frameAt = 0

  function reserve(bytes: number) {
    if (at + bytes <= buffer.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(buffer.length * 2, at + bytes))
    buffer.copy(larger, 0, 0, at)
    buffer = larger
  }

  function integer(first: number, bits: number, value: number) {
    reserve(6)
    const most = (1 << bits) - 1
    if (value < most) {
      buffer[at++] = first | value
      return
    }
    buffer[at++] = first | most
    let rest = value - most
    for (; rest >= 0x80; rest >>>= 7) buffer[at++] = (rest & 0x7f) | 0x80
    buffer[at++] = rest
  }

  return {
    byte(value) {
      reserve(1)
      buffer[at++] = value
    },
    integer,
    text(value) {
      integer(0x00, 7, value.length)
      reserve(value.length)
      at += buffer.write(value, at, 'latin1')
    },
    body(bytes) {
      reserve(bytes.length)
      buffer.set(bytes, at)
      at += bytes.length
    },
    uint32(value) {
      reserve(4)
      at = buffer.writeUInt32BE(value >>> 0, at)
    },
    beginFrame(type, flags, streamId) {
      reserve(9)
      frameAt = at
      at += 3
      buffer[at++] = type
      buffer[at++] = flags
      at = buffer.writeUInt32BE(streamId, at)
    },
    endFrame() {
      buffer.writeUIntBE(at - frameAt - 9, frameAt, 3)
    },
    isEmpty: () => at === 0,
    // The socket keeps the buffer until it is written, so the next frames need another one, probably of about the same
    // size.
    take() {
      const taken = buffer.subarray(0, at)
      buffer = Buffer.allocUnsafeSlow(Math.max(LEAST_BYTES, Math.ceil(at * 1.1)))
      at = 0
      return taken
    },
  }
}
