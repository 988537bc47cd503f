// Headers of mail (RFC 5322, 2047): whatever the text, each comes out as one header, in ASCII, in lines that every server takes.

import { fillPieces, type Pieces, PLACEHOLDER_MARK, splitAtPlaceholders } from '../../../lib/placeholders.ts'
import { isAscii } from '../address.ts'
import { InvalidEmail } from '../message.ts'

const MOST_LINE = 76
/** In an encoded word of 75 characters, "=?UTF-8?B?" and "?=" leave room for 60 of base64. */
const WORD_BYTES = 45
/** As long as what stands at a place. */
const REFERENCE = 'x'.repeat(55)

const NAME = /^[!-9;-~]{1,70}$/

/** Nothing but a space is left of what could begin another line. */
const clean = (text: string) => text.toWellFormed().replaceAll(/[\p{Cc}\u2028\u2029]+/gu, ' ')

/** The result holds the places with their marks, begins with the name, and has no line end at its end. */
export function formatHeader(name: string, pieces: Pieces): string {
  if (!NAME.test(name)) throw new InvalidEmail('header not valid')
  const text = pieces.map(clean).join(PLACEHOLDER_MARK)
  const isPlain = isAscii(text) && !text.includes('=?') && text === text.trim() && longestWord(text) < 900
  if (!isPlain && pieces.length > 1) throw new InvalidEmail('header not valid')
  return isPlain ? fold(`${name}: ${text}`) : `${name}: ${encodeWords(text, MOST_LINE - name.length - 2)}`
}

/** Of somebody: `"A name" <a@example.com>`. The address is one that was read. */
export function formatMailboxHeader(name: string, person: string | undefined, address: string): string {
  const shown = clean(person ?? '').trim()
  if (shown === '') return `${name}: <${address}>`
  const isPlain = isAscii(shown) && !shown.includes('=?') && shown.length <= 60
  const phrase = isPlain ? `"${shown.replaceAll(/["\\]/g, '\\$&')}"` : encodeWords(shown, MOST_LINE - name.length - 2)
  const isShort = !phrase.includes('\r\n') && name.length + phrase.length + address.length + 5 <= MOST_LINE
  return `${name}: ${phrase}${isShort ? '' : '\r\n'} <${address}>`
}

/** Single spaces alone, so that taking the line ends out again gives the very text. */
const BREAK = /(?<! ) (?! )/

const longestWord = (text: string) => text.split(BREAK).reduce((most, word) => Math.max(most, word.length), 0)

function fold(header: string): string {
  let line = 0
  return header
    .split(BREAK)
    .map((word, n) => {
      const length = fillPieces(splitAtPlaceholders(word), () => REFERENCE).length
      // The first word of the value stays beside the name: a line of nothing but a name is not read by all.
      const isBroken = n > 1 && line + 1 + length > MOST_LINE
      line = isBroken ? 1 + length : line + length + (n > 0 ? 1 : 0)
      return n === 0 ? word : `${isBroken ? '\r\n ' : ' '}${word}`
    })
    .join('')
}

/** Each word holds whole characters; the white space between words is none of the text. */
function encodeWords(text: string, room: number): string {
  const words: string[] = []
  let word = ''
  let bytes = 0
  // The first one shares its line with the name.
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
