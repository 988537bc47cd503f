// Splits a text into segments. A single segment holds 160 characters of the GSM alphabet or 70 UTF-16 units. If there
// are several, each holds 153 or 67, because a header says which part it is. Extended characters and surrogate pairs
// are never split.

import { gsm7Codes } from './gsm7.ts'

export type Encoding = 'gsm7' | 'ucs2'

export type SmsSegments = {
  encoding: Encoding
  /** The bytes of each part without its header: one septet per byte, or UTF-16 in network byte order. */
  parts: Buffer[]
}

const ROOM: Record<Encoding, { alone: number; together: number }> = {
  gsm7: { alone: 160, together: 153 },
  ucs2: { alone: 140, together: 134 },
}

/** The header counts the parts in one byte. */
export const MOST_PARTS = 255

export function cutIntoSegments(text: string): SmsSegments {
  const characters = Array.from(text.toWellFormed())
  const septets = characters.map(gsm7Codes)
  const isGsm7 = septets.every((codes) => codes !== undefined)
  const encoding = isGsm7 ? 'gsm7' : 'ucs2'
  const units = isGsm7 ? septets.map((codes) => Buffer.from(codes)) : characters.map(utf16)
  const { alone, together } = ROOM[encoding]
  const whole = Buffer.concat(units)
  return { encoding, parts: whole.length <= alone ? [whole] : fill(units, together) }
}

function fill(units: readonly Buffer[], room: number): Buffer[] {
  const parts: Buffer[] = []
  let part: Buffer[] = []
  let bytes = 0
  for (const unit of units) {
    if (bytes + unit.length > room) {
      parts.push(Buffer.concat(part))
      part = []
      bytes = 0
    }
    part.push(unit)
    bytes += unit.length
  }
  return [...parts, Buffer.concat(part)]
}

const utf16 = (character: string) => Buffer.from(character, 'utf16le').swap16()

export const decodeUcs2 = (bytes: Buffer): string =>
  Buffer.from(bytes.subarray(0, bytes.length & ~1))
    .swap16()
    .toString('utf16le')

/** The user data header that joins the parts of a message (element 0, with a one-byte reference). */
export const joinHeader = (reference: number, total: number, number: number): Buffer =>
  Buffer.from([5, 0, 3, reference & 0xff, total, number])
