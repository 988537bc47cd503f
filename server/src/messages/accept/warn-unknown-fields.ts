// Unknown fields of a request are ignored, as the public service does, but not in silence: a misspelled one can mean that a
// message goes out without what it was to have.

import { nearestName } from '../../lib/nearest-name.ts'
import { CreateMessageBody } from '../schema.ts'

/** More are counted, and not named. */
const MAX_NAMED = 10
const MAX_NAME_LENGTH = 64

const KNOWN = new Set(Object.keys(CreateMessageBody.properties))

/** One warning for each field that is not known and not null, which is what clients send for what they leave out. */
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

/** The name is the caller's: what is no plain word is cut, quoted, and without characters that a terminal would obey. */
function readable(name: string): string {
  if (name.length <= MAX_NAME_LENGTH && /^[\w.-]+$/.test(name)) return name
  const characters = Array.from(name.slice(0, 2 * MAX_NAME_LENGTH))
    .slice(0, MAX_NAME_LENGTH)
    .join('')
  const cut = characters.length < name.length ? `${characters}…` : characters
  return JSON.stringify(cut.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '\uFFFD'))
}
