// The alphabet of GSM 03.38: 128 characters, and ten more that take two septets.

const BASIC =
  '@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\u001bÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?' +
  '¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà'

const ESCAPE = 0x1b

const EXTENSION: Readonly<Record<string, number>> = {
  '\f': 0x0a,
  '^': 0x14,
  '{': 0x28,
  '}': 0x29,
  '\\': 0x2f,
  '[': 0x3c,
  '~': 0x3d,
  ']': 0x3e,
  '|': 0x40,
  '€': 0x65,
}

const codes = new Map<string, readonly number[]>([
  ...Array.from(BASIC, (character, code): [string, readonly number[]] => [character, [code]]),
  ...Object.entries(EXTENSION).map(([character, code]): [string, readonly number[]] => [character, [ESCAPE, code]]),
])
// The escape is an entry of the table, not a character that anybody can write.
codes.delete('\u001b')

/** Returns one or two septets, each in its own byte; undefined for a character that the alphabet lacks. */
export const gsm7Codes = (character: string): readonly number[] | undefined => codes.get(character)

const basicCharacters = Array.from(BASIC)
const extendedCharacters = new Map(Object.entries(EXTENSION).map(([character, code]) => [code, character]))

/**
 * Decodes bytes that contain one septet each. An extended code that is not defined reads as the basic character, as on
 * handsets.
 */
export function decodeGsm7(bytes: Uint8Array): string {
  let text = ''
  for (let i = 0; i < bytes.length; i++) {
    const isEscaped = bytes[i] === ESCAPE && i + 1 < bytes.length
    const code = (isEscaped ? bytes[++i] : bytes[i]) as number
    text += (isEscaped && extendedCharacters.get(code)) || (basicCharacters[code & 0x7f] as string)
  }
  return text
}
