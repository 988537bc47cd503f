// The tables of HPACK (RFC 7541): the static one, which both sides know from the beginning, and the dynamic one of
// headers that were sent over this connection.

type HeaderEntry = readonly [name: string, value: string]

/** Indexes start at 1. */
export const STATIC_ENTRIES: readonly HeaderEntry[] = [
  ['', ''],
  [':authority', ''],
  [':method', 'GET'],
  [':method', 'POST'],
  [':path', '/'],
  [':path', '/index.html'],
  [':scheme', 'http'],
  [':scheme', 'https'],
  [':status', '200'],
  [':status', '204'],
  [':status', '206'],
  [':status', '304'],
  [':status', '400'],
  [':status', '404'],
  [':status', '500'],
  ['accept-charset', ''],
  ['accept-encoding', 'gzip, deflate'],
  ['accept-language', ''],
  ['accept-ranges', ''],
  ['accept', ''],
  ['access-control-allow-origin', ''],
  ['age', ''],
  ['allow', ''],
  ['authorization', ''],
  ['cache-control', ''],
  ['content-disposition', ''],
  ['content-encoding', ''],
  ['content-language', ''],
  ['content-length', ''],
  ['content-location', ''],
  ['content-range', ''],
  ['content-type', ''],
  ['cookie', ''],
  ['date', ''],
  ['etag', ''],
  ['expect', ''],
  ['expires', ''],
  ['from', ''],
  ['host', ''],
  ['if-match', ''],
  ['if-modified-since', ''],
  ['if-none-match', ''],
  ['if-range', ''],
  ['if-unmodified-since', ''],
  ['last-modified', ''],
  ['link', ''],
  ['location', ''],
  ['max-forwards', ''],
  ['proxy-authenticate', ''],
  ['proxy-authorization', ''],
  ['range', ''],
  ['referer', ''],
  ['refresh', ''],
  ['retry-after', ''],
  ['server', ''],
  ['set-cookie', ''],
  ['strict-transport-security', ''],
  ['transfer-encoding', ''],
  ['user-agent', ''],
  ['vary', ''],
  ['via', ''],
  ['www-authenticate', ''],
]

export const FIRST_DYNAMIC = STATIC_ENTRIES.length
/** The initial size on both sides. */
export const TABLE_BYTES = 4096
const ENTRY_OVERHEAD = 32

export const sizeOf = (name: string, value: string) => name.length + value.length + ENTRY_OVERHEAD

/** The newest entry comes first; the oldest are evicted when there is no room. */
export type HeaderTable = {
  add(name: string, value: string): void
  /** Finds an entry by its index in the protocol. */
  at(index: number): HeaderEntry | undefined
  /** The protocol index of the nth entry that was added, counted from 0; undefined if it was evicted. */
  indexOf(nth: number): number | undefined
  /** How many entries were ever added. */
  added(): number
  limit(bytes: number): void
}

export function createHeaderTable(): HeaderTable {
  // A queue whose evicted entries are removed from the array in bulk, not with every `add`.
  let entries: HeaderEntry[] = []
  let first = 0
  let cut = 0
  let size = 0
  let most = TABLE_BYTES

  function shrinkTo(bytes: number) {
    while (size > bytes && first < entries.length) {
      const [name, value] = entries[first++] as HeaderEntry
      size -= sizeOf(name, value)
    }
    if (first < 256) return
    cut += first
    entries = entries.slice(first)
    first = 0
  }

  return {
    add(name, value) {
      const bytes = sizeOf(name, value)
      shrinkTo(Math.max(0, most - bytes))
      if (bytes > most) {
        // As HPACK requires, an entry that is larger than the table empties it and is not stored.
        cut++
        return
      }
      entries.push([name, value])
      size += bytes
    },
    at(index) {
      if (index < FIRST_DYNAMIC) return index > 0 ? STATIC_ENTRIES[index] : undefined
      const place = entries.length - 1 - (index - FIRST_DYNAMIC)
      return place >= first ? entries[place] : undefined
    },
    indexOf(nth) {
      const place = nth - cut
      return place >= first && place < entries.length ? FIRST_DYNAMIC + entries.length - 1 - place : undefined
    },
    added: () => cut + entries.length,
    limit(bytes) {
      most = bytes
      shrinkTo(bytes)
    },
  }
}
