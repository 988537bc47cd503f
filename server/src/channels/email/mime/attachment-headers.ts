// The headers of an attachment (RFC 2183, 2231). Whatever its name and type, the lines begin with a space or with one
// of our header names, are ASCII, and have no two spaces in a row, so that canonicalization for DKIM does not change
// them.

import { isMediaType } from '../../../lib/media-type.ts'
import type { EmailAttachment } from '../message.ts'

/** Names of only letters, digits and a few other characters are quoted; all others are encoded. */
const PLAIN = /^[\w.()+@-]+(?: [\w.()+@-]+)*$/
const MOST_PLAIN = 60
/** What is left of a line of 76 characters beside ` filename*12*=UTF-8''` and `;`. */
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
 * Keeps only the last part of a path: a name must not lead into another folder, nor appear to have another extension
 * than it has. Because the extension says what the file is, long names are cut at the start.
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
