// Parses a list of addresses as other services export it: one per line, or the first column of a CSV file with or
// without a heading.

import { invalid } from '../../lib/errors.ts'
import { isEmail } from '../../users/subscriptions/subscription.ts'

const MOST_NAMED = 5

/**
 * Throws an error that names the lines without an address, because a partial import that looks complete is worse than
 * none.
 */
export function parseAddressList(text: string): string[] {
  const lines = text.replace(/^\ufeff/, '').split(/\r?\n/)
  const addresses: string[] = []
  const wrong: number[] = []
  lines.forEach((line, i) => {
    const first = (line.split(/[,;\t]/)[0] as string).trim().replace(/^"(.*)"$/, '$1')
    if (first === '') return
    if (isEmail(first)) addresses.push(first.toLowerCase())
    // A first line without an @ is a heading; any other invalid address is an error.
    else if (addresses.length > 0 || wrong.length > 0 || first.includes('@')) wrong.push(i + 1)
  })
  if (wrong.length > 0) {
    const named = wrong.slice(0, MOST_NAMED).join(', ')
    const more = wrong.length > MOST_NAMED ? ` and ${wrong.length - MOST_NAMED} more` : ''
    throw invalid(`line ${named}${more}: no email address; nothing was imported`)
  }
  return [...new Set(addresses)]
}
