// Decodes the header blocks of one connection, in the order in which they arrived (RFC 7541).

import { ownProperty } from '../../../lib/own-property.ts'
import { createHeaderTable, TABLE_BYTES } from './header-table.ts'
import { decodeHuffman } from './huffman.ts'

export type Headers = Record<string, string>

/** The peer violated the protocol, so nothing after this can be decoded. */
export class BadHeaders extends Error {}

export type ReadHeaders = (block: Buffer) => Headers

export function createHeaderReader(): ReadHeaders {
  const table = createHeaderTable()
  let block: Buffer = Buffer.alloc(0)
  let at = 0

  function integer(bits: number): number {
    const most = (1 << bits) - 1
    let value = (block[at++] ?? fail()) & most
    if (value < most) return value
    for (let shift = 0; shift <= 21; shift += 7) {
      const byte = block[at++] ?? fail()
      value += (byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
    return fail()
  }

  function text(): string {
    const isCoded = ((block[at] ?? fail()) & 0x80) !== 0
    const length = integer(7)
    const from = at
    at += length
    if (at > block.length) return fail()
    return isCoded ? (decodeHuffman(block, from, at) ?? fail()) : block.toString('latin1', from, at)
  }

  function keep(headers: Headers, name: string, value: string) {
    const before = ownProperty(headers, name)
    headers[name] = before === undefined ? value : `${before}, ${value}`
  }

  return (given) => {
    block = given
    at = 0
    const headers: Headers = Object.create(null)
    while (at < block.length) {
      const byte = block[at] as number
      if (byte >= 0x80) {
        const [name, value] = table.at(integer(7)) ?? fail()
        keep(headers, name, value)
      } else if (byte >= 0x20 && byte < 0x40) {
        const bytes = integer(5)
        if (bytes > TABLE_BYTES) fail()
        table.limit(bytes)
      } else {
        const isAdded = byte >= 0x40
        const index = integer(isAdded ? 6 : 4)
        const name = index === 0 ? text() : (table.at(index) ?? fail())[0]
        const value = text()
        if (isAdded) table.add(name, value)
        keep(headers, name, value)
      }
    }
    return headers
  }
}

function fail(): never {
  throw new BadHeaders()
}
