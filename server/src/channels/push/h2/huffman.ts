// The Huffman code of HTTP/2 header strings (RFC 7541, appendix B). It is canonical, so the code lengths define it
// completely.

/** The code length in bits of each byte, from 0 to 255, and of the end mark, which no string may contain. */
const LENGTHS = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
  28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6,
  5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23,
  22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22,
  23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26,
  20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27,
  27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27,
  27, 27, 27, 26, 30,
]
const END_MARK = 256
const LONGEST = 30

const bySize = [...LENGTHS.keys()].sort((a, b) => (LENGTHS[a] as number) - (LENGTHS[b] as number) || a - b)

/** For each length: its first code, how many codes there are, and where their symbols begin in `bySize`. */
const FIRST = new Int32Array(LONGEST + 1)
const COUNT = new Int32Array(LONGEST + 1)
const START = new Int32Array(LONGEST + 1)
for (const length of LENGTHS) COUNT[length] = (COUNT[length] as number) + 1
for (let length = 1, code = 0, start = 0; length <= LONGEST; length++) {
  FIRST[length] = code
  START[length] = start
  code = (code + (COUNT[length] as number)) << 1
  start += COUNT[length] as number
}

/**
 * Returns a string with one character per byte. Returns undefined if the code is invalid or does not end as it must.
 */
export function decodeHuffman(bytes: Buffer, from: number, until: number): string | undefined {
  let text = ''
  let code = 0
  let length = 0
  for (let at = from; at < until; at++) {
    const byte = bytes[at] as number
    for (let bit = 7; bit >= 0; bit--) {
      code = (code << 1) | ((byte >> bit) & 1)
      if (++length > LONGEST) return undefined
      const place = code - (FIRST[length] as number)
      if (place < 0 || place >= (COUNT[length] as number)) continue
      const symbol = bySize[(START[length] as number) + place] as number
      if (symbol === END_MARK) return undefined
      text += String.fromCharCode(symbol)
      code = 0
      length = 0
    }
  }
  // The rest must be the start of the end mark: fewer than eight ones.
  return length < 8 && code === (1 << length) - 1 ? text : undefined
}
