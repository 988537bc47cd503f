// Text with named places, in each of which something of the recipient's own stands. It is kept in the pieces around the places, so
// that what is the same for all recipients is put together, and encoded, once.

/** Text at the even positions, the names of places at the odd ones: `['Hello ', 'name', '!']`. */
export type Pieces = readonly string[]

/** Stands around the name of a place while a text is put together. Nothing that can be stored holds it. */
export const PLACEHOLDER_MARK = '\0'

export const placeholder = (name: string) => `${PLACEHOLDER_MARK}${name}${PLACEHOLDER_MARK}`

export const splitAtPlaceholders = (text: string): Pieces => text.split(PLACEHOLDER_MARK)

export const isPlaceholderName = (position: number) => position % 2 === 1

export function fillPieces(pieces: Pieces, fill: (name: string) => string): string {
  let text = pieces[0] ?? ''
  for (let n = 1; n < pieces.length; n += 2) text += fill(pieces[n] as string) + pieces[n + 1]
  return text
}
