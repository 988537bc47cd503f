// The headers of a file in a mail (RFC 2183, 2231). Whatever its name and type: lines that begin with a space or a name of ours, in
// ASCII, without two spaces in a row, so that what is signed is what is written.

import { isMediaType } from '../../../lib/media-type.ts'
import type { EmailAttachment } from '../message.ts'

/** Letters, digits and a few more, between quotes; all else is encoded. */
const PLAIN = /^[\w.()+@-]+(?: [\w.()+@-]+)*$/
const MOST_PLAIN = 60
/** Beside ` filename*12*=UTF-8''` and `;`, in a line of 76. */
const MOST_ENCODED = 52
const MOST_NAME = 255

export function attachmentHeaders({ name, contentType }: Pick<EmailAttachment, 'name' | 'contentType'>): string[] {
  return [
    `Content-Type: ${isMediaType(contentType) ? contentType : 'application/octet-stream'}`,
    'Content-Transfer-Encoding: base64',
    `Content-Disposition: attachment;\r\n ${parametersOf(plainName(name)).join(';\r\n ')}`,
  ]
}

/**
 * Of a path its last part: a name must not lead anywhere, nor seem to end otherwise than it does. Its end says what it is, so that
 * is what is kept of a long one.
 */
function plainName(name: string): string {
  const plain = name
    .toWellFormed()
    .replace(/^.*[/\\]/s, '')
    .replaceAll(/[\p{Cc}\p{Bidi_Control}\s]+/gu, ' ')
    .trim()
  return [...plain].slice(-MOST_NAME).join('') || 'attachment'
}

function parametersOf(name: string): string[] {
  if (PLAIN.test(name) && name.length <= MOST_PLAIN) return [`filename="${name}"`]
  const pieces = ['']
  for (const character of name) {
    const encoded = encode(character)
    if ((pieces.at(-1) ?? '').length + encoded.length > MOST_ENCODED) pieces.push('')
    pieces[pieces.length - 1] += encoded
  }
  const [first = '', ...others] = pieces
  if (others.length === 0) return [`filename*=UTF-8''${first}`]
  return [`filename*0*=UTF-8''${first}`, ...others.map((piece, n) => `filename*${n + 1}*=${piece}`)]
}

const encode = (character: string) =>
  encodeURIComponent(character).replaceAll(/[!~*'()]/g, (it) => `%${it.charCodeAt(0).toString(16).toUpperCase()}`)
