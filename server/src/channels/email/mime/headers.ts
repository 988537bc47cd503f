// Email headers (RFC 5322, 2047): any text becomes one header in ASCII, in lines that every server accepts.

import { fillPieces, type Pieces, PLACEHOLDER_MARK, splitAtPlaceholders } from '../../../lib/placeholders.ts'
import { isAscii } from '../address.ts'
import { InvalidEmail } from '../message.ts'

const MOST_LINE = 76
/** In an encoded word of 75 characters, "=?UTF-8?B?" and "?=" leave 60 characters for base64. */
const WORD_BYTES = 45
/** As long as the value of a placeholder. */
const REFERENCE = 'x'.repeat(55)

const NAME = /^[!-9;-~]{1,70}$/

/** Replaces everything that could start another line with a space. */
const clean = (text: string) => text.toWellFormed().replaceAll(/[\p{Cc}\u2028\u2029]+/gu, ' ')

/** The result begins with the name, contains placeholders with their marks, and has no line end at its end. */
export function formatHeader(name: string, pieces: Pieces): string {
  if (!NAME.test(name)) throw new InvalidEmail('header not valid')
  const text = pieces.map(clean).join(PLACEHOLDER_MARK)
  const isPlain = isAscii(text) && !text.includes('=?') && text === text.trim() && longestWord(text) < 900
  if (!isPlain && pieces.length > 1) throw new InvalidEmail('header not valid')
  return isPlain ? fold(`${name}: ${text}`) : `${name}: ${encodeWords(text, MOST_LINE - name.length - 2)}`
}

/** Writes a mailbox: `"A name" <a@example.com>`. The address must have been parsed. */
export function formatMailboxHeader(name: string, person: string | undefined, address: string): string {
  const shown = clean(person ?? '').trim()
  if (shown === '') return `${name}: <${address}>`
  const isPlain = isAscii(shown) && !shown.includes('=?') && shown.length <= 60
  const phrase = isPlain ? `"${shown.replaceAll(/["\\]/g, '\\$&')}"` : encodeWords(shown, MOST_LINE - name.length - 2)
  const isShort = !phrase.includes('\r\n') && name.length + phrase.length + address.length + 5 <= MOST_LINE
  return `${name}: ${phrase}${isShort ? '' : '\r\n'} <${address}>`
}

/** Breaks only at single spaces, so that unfolding restores the exact text. */
const BREAK = /(?<! ) (?! )/

const longestWord = (text: string) => text.split(BREAK).reduce((most, word) => Math.max(most, word.length), 0)

function fold(header: string): string {
  let line = 0
  return header
    .split(BREAK)
    .map((word, n) => {
      const length = fillPieces(splitAtPlaceholders(word), () => REFERENCE).length
      // The first word of the value stays on the line of the name: not all servers accept a line that has only the
      // name.
      const isBroken = n > 1 && line + 1 + length > MOST_LINE
      line = isBroken ? 1 + length : line + length + (n > 0 ? 1 : 0)
      return n === 0 ? word : `${isBroken ? '\r\n ' : ' '}${word}`
    })
    .join('')
}

/** Each encoded word contains whole characters. The white space between encoded words is not part of the text. */
function encodeWords(text: string, room: number): string {
  const words: string[] = []
  let word = ''
  let bytes = 0
  // The first encoded word shares its line with the name.
  let most = Math.min(WORD_BYTES, Math.max(9, Math.floor((room - 12) / 4) * 3))
  for (const character of text) {
    const more = Buffer.byteLength(character)
    if (bytes + more > most) {
      words.push(word)
      word = ''
      bytes = 0
      most = WORD_BYTES
    }
    word += character
    bytes += more
  }
  return [...words, word].map((it) => `=?UTF-8?B?${Buffer.from(it).toString('base64')}?=`).join('\r\n ')
}
