// Unknown fields of a request are ignored, as the public service does, but the answer warns about them: because of a
// misspelled field, a message can go out without something it was meant to have.

import { nearestName } from '../../lib/nearest-name.ts'
import { CreateMessageBody } from '../schema.ts'

/** Further fields are counted but not named. */
const MAX_NAMED = 10
const MAX_NAME_LENGTH = 64

const KNOWN = new Set(Object.keys(CreateMessageBody.properties))

/**
 * Returns one warning for each unknown field. Fields that are null are skipped, because clients send null for what they
 * leave out.
 */
export function warnUnknownFields(body: Record<string, unknown>): string[] {
  const unknown: string[] = []
  for (const name in body) if (!KNOWN.has(name) && body[name] !== null) unknown.push(name)
  const warnings = unknown.slice(0, MAX_NAMED).map(describe)
  const more = unknown.length - warnings.length
  if (more > 0) warnings.push(`${more} more unknown ${more === 1 ? 'field' : 'fields'}`)
  return warnings
}

function describe(name: string): string {
  const nearest = name.length <= MAX_NAME_LENGTH ? nearestName(name, KNOWN) : undefined
  return `unknown field ${readable(name)}${nearest === undefined ? '' : `; did you mean ${nearest}?`}`
}

/**
 * The name comes from the caller. Unless it is a plain word, it is shortened, quoted, and stripped of control
 * characters that a terminal would interpret.
 */
function readable(name: string): string {
  if (name.length <= MAX_NAME_LENGTH && /^[\w.-]+$/.test(name)) return name
  const characters = Array.from(name.slice(0, 2 * MAX_NAME_LENGTH))
    .slice(0, MAX_NAME_LENGTH)
    .join('')
  const cut = characters.length < name.length ? `${characters}…` : characters
  return JSON.stringify(cut.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '\uFFFD'))
}
