// Email addresses as they are written in envelopes and headers (RFC 5321, 5322, 6531).

import { domainToASCII } from 'node:url'

export type EmailAddress = {
  /** `local@domain`: the domain in ASCII, the local part quoted if its characters require it. */
  text: string
  domain: string
  /** The local part is not ASCII, so only servers with SMTPUTF8 can accept it. */
  isUtf8: boolean
}

const LETTER = "\\w!#$%&'*+/=?^`{|}~\\u0080-\\u{10ffff}-"
const DOT_ATOM = new RegExp(`^[${LETTER}]+(?:\\.[${LETTER}]+)*$`, 'u')
/**
 * Local parts with misplaced dots, as some Japanese providers assign them, are valid when quoted. The pattern must
 * match in only one way: otherwise it would backtrack exponentially.
 */
const DOTTED = new RegExp(`^[.]*[${LETTER}][.${LETTER}]*$`, 'u')
const QUOTED = /^"(?:[^"\\\p{Cc}]|\\[ -~])*"$/u
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i

const MOST_LOCAL = 64
const MOST = 254

/** Returns undefined if the text is not an email address. */
export function parseEmailAddress(given: string): EmailAddress | undefined {
  const at = given.lastIndexOf('@')
  const domain = readDomain(given.slice(at + 1))
  const local = readLocal(given.slice(0, Math.max(at, 0)))
  if (local === undefined || domain === undefined) return undefined
  const text = `${local}@${domain}`
  if (Buffer.byteLength(local) > MOST_LOCAL || Buffer.byteLength(text) > MOST) return undefined
  return { text, domain, isUtf8: !isAscii(local) }
}

function readLocal(given: string): string | undefined {
  if (!given.isWellFormed() || /[\p{Zs}\p{Zl}\p{Zp}\p{Cc}\p{Cf}]/u.test(given.replace(/^".*"$/, ''))) return undefined
  if (DOT_ATOM.test(given) || QUOTED.test(given)) return given
  return DOTTED.test(given) ? `"${given}"` : undefined
}

function readDomain(given: string): string | undefined {
  const name = isAscii(given) ? given.toLowerCase() : domainToASCII(given)
  return name.length <= 253 && name.split('.').every((label) => LABEL.test(label)) ? name : undefined
}

export const isAscii = (text: string) => !/[\u0080-\uffff]/.test(text)
