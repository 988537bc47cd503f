// As much of Protocol Buffers as a browser's push back end needs: fields are written by number, frames are cut by length.

export function varint(value: number | bigint): Buffer {
  const bytes: number[] = []
  let rest = BigInt(value)
  do {
    const more = rest > 127n ? 128 : 0
    bytes.push(Number(rest & 127n) | more)
    rest >>= 7n
  } while (rest > 0n)
  return Buffer.from(bytes)
}

/** The value and where it ends, or undefined while not all of it is there. */
export function readVarint(bytes: Buffer, at: number): { value: number; end: number } | undefined {
  let value = 0
  for (let i = at; i < bytes.length; i++) {
    const byte = bytes[i] as number
    value += (byte & 127) * 2 ** (7 * (i - at))
    if (byte < 128) return { value, end: i + 1 }
  }
  return undefined
}

export const number = (field: number, value: number | bigint) => Buffer.concat([varint(field << 3), varint(value)])

export function fixed64(field: number, value: bigint): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(value)
  return Buffer.concat([varint((field << 3) | 1), bytes])
}

export function bytes(field: number, value: string | Buffer): Buffer {
  const content = Buffer.from(value as Buffer)
  return Buffer.concat([varint((field << 3) | 2), varint(content.length), content])
}
