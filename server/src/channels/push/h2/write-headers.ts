// Encodes the header blocks of one connection. Headers that are the same in every request (such as credentials and
// topic) are sent once, and take a single byte from then on. Strings are written without Huffman coding, which costs
// some bytes and saves time.

import { createHeaderTable, STATIC_ENTRIES, sizeOf, TABLE_BYTES } from './header-table.ts'
import type { Output } from './output.ts'

/** These differ in every request. Storing them would evict useful entries from the table. */
const FLEETING = new Set([':path', 'content-length', 'apns-id'])

const names = new Map<string, number>()
const whole = new Map<string, number>()
STATIC_ENTRIES.forEach(([name, value], index) => {
  if (index === 0) return
  if (!names.has(name)) names.set(name, index)
  if (value) whole.set(`${name} ${value}`, index)
})
const METHOD_POST = 0x80 | (whole.get(':method POST') as number)
const SCHEME_HTTPS = 0x80 | (whole.get(':scheme https') as number)

export type HeaderWriter = {
  /** Writes the header block of a POST over https. */
  post(out: Output, authority: string, path: string, headers: Readonly<Record<string, string>>, length: number): void
  /** Sets the table size that the peer accepts. */
  limit(bytes: number): void
}

export function createHeaderWriter(): HeaderWriter {
  const table = createHeaderTable()
  const known = new Map<string, Map<string, number>>()
  let most = TABLE_BYTES
  let isLimitNew = false

  function literal(out: Output, first: number, bits: number, name: string, value: string) {
    const index = names.get(name) ?? 0
    out.integer(first, bits, index)
    if (index === 0) out.text(name)
    out.text(value)
  }

  function remembered(name: string, value: string): number | undefined {
    const nth = known.get(name)?.get(value)
    return nth === undefined ? undefined : table.indexOf(nth)
  }

  function remember(name: string, value: string) {
    let values = known.get(name)
    // All values of a name are forgotten at once, instead of tracking evictions: few names ever have more than a
    // handful.
    if (values === undefined || values.size > 100) {
      values = new Map()
      known.set(name, values)
    }
    values.set(value, table.added())
    table.add(name, value)
  }

  function header(out: Output, name: string, value: string) {
    if (FLEETING.has(name)) return literal(out, 0x00, 4, name, value)
    const index = remembered(name, value)
    if (index !== undefined) return out.integer(0x80, 7, index)
    if (sizeOf(name, value) > most / 2) return literal(out, 0x00, 4, name, value)
    literal(out, 0x40, 6, name, value)
    remember(name, value)
  }

  return {
    post(out, authority, path, headers, length) {
      if (isLimitNew) out.integer(0x20, 5, most)
      isLimitNew = false
      out.byte(METHOD_POST)
      out.byte(SCHEME_HTTPS)
      header(out, ':authority', authority)
      header(out, ':path', path)
      for (const name in headers) header(out, name, headers[name] as string)
      header(out, 'content-length', String(length))
    },
    limit(bytes) {
      const next = Math.min(bytes, TABLE_BYTES)
      if (next === most) return
      most = next
      isLimitNew = true
      table.limit(most)
    },
  }
}
