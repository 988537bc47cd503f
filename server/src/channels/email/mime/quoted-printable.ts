// Quoted-printable (RFC 2045): every line is printable ASCII, at most 76 characters long, and ends in CR LF. Nothing in
// it can be mistaken for the end of a message or for a boundary that contains "=_".

const EQUALS = 0x3d
const CR = 13
const LF = 10
/** 76 with the "=" of a soft break. */
const MOST_LINE = 75
const HEX = Buffer.from('0123456789ABCDEF')

/**
 * The text begins at the start of a line and may end in the middle of one, where "=" and a line end can follow. All
 * forms of line ends are recognized.
 */
export function encodeQuotedPrintable(text: string): string {
  const source = Buffer.from(text.toWellFormed().replaceAll(/\r\n?/g, '\n'))
  const out = Buffer.allocUnsafe(source.length * 3 + Math.ceil((source.length * 3) / 70) * 3 + 3)
  let length = 0
  let column = 0
  for (let i = 0; i < source.length; i++) {
    const byte = source[i] as number
    if (byte === LF) {
      out[length++] = CR
      out[length++] = LF
      column = 0
      continue
    }
    const isLast = i + 1 === source.length || source[i + 1] === LF
    let isPlain = isLiteral(byte, isLast)
    if (column + (isPlain ? 1 : 3) > MOST_LINE) {
      out[length++] = EQUALS
      out[length++] = CR
      out[length++] = LF
      column = 0
    }
    if (column === 0 && isTouchy(byte)) isPlain = false
    if (isPlain) out[length++] = byte
    else {
      out[length++] = EQUALS
      out[length++] = HEX[byte >> 4] as number
      out[length++] = HEX[byte & 15] as number
    }
    column += isPlain ? 1 : 3
  }
  return out.toString('latin1', 0, length)
}

/** Spaces and tabs at the end of a line would be lost, so they are encoded there. */
const isLiteral = (byte: number, isLast: boolean) =>
  (byte > 32 && byte < 127 && byte !== EQUALS) || ((byte === 32 || byte === 9) && !isLast)

/** Servers on the way may change these at the start of a line: a dot, and the F of "From ". */
const isTouchy = (byte: number) => byte === 0x2e || byte === 0x46
