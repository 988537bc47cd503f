// The form of a message between DATA and the final dot (RFC 5321, 4.5.2). It is a string with one character for each
// byte: a socket can write it as it is, while a buffer would have to be allocated, filled and collected for every
// email.

import { isAscii } from '../address.ts'

const CR = 13
const LF = 10
const DOT = 46

/** A message in the form that `toWireText` returns, or a part of one that consists of whole lines. */
export type WireText = string & { readonly [wire]: true }
declare const wire: unique symbol

/** UTF-8 with one character for each byte. */
export const toByteString = (text: string): string => (isAscii(text) ? text : Buffer.from(text).toString('latin1'))

/**
 * Every line end becomes CR LF, a line that begins with a dot gets a second one, and the last line gets a line end. So
 * neither this server nor a less strict one behind it can mistake anything inside for the end of the message.
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
