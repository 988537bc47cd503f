// A message between DATA and the final dot (RFC 5321, 4.5.2). It is text with one character for each byte: a socket takes it as it is,
// while bytes in memory of their own would have to be made, filled and collected for every mail.

import { isAscii } from '../address.ts'

const CR = 13
const LF = 10
const DOT = 46

/** A message, or a part of one that begins and ends as a line does, that is as `toWire` leaves it. */
export type WireText = string & { readonly [wire]: true }
declare const wire: unique symbol

/** UTF-8, as one character for each byte. */
export const toByteString = (text: string): string => (isAscii(text) ? text : Buffer.from(text).toString('latin1'))

/**
 * Every line end is CR LF, every line that begins with a dot has one more, and the last line has an end: nothing inside can be
 * taken for the end of the message, by this server or by one behind it that is less strict.
 */
export function toWireText(message: string): WireText {
  return (isClean(message) ? message : clean(message)) as WireText
}

function isClean(message: string): boolean {
  let last = LF
  for (let i = 0; i < message.length; i++) {
    const byte = message.charCodeAt(i)
    if (byte === LF ? last !== CR : last === CR) return false
    if (byte === DOT && last === LF) return false
    last = byte
  }
  return last === LF && message.length > 0
}

function clean(message: string): string {
  const lines = message.split(/\r\n|\r|\n/).map((line) => (line.startsWith('.') ? `.${line}` : line))
  if (lines.at(-1) === '') lines.pop()
  return lines.map((line) => `${line}\r\n`).join('')
}
