// Text with named placeholders that are filled for each recipient. It is kept as the pieces around them, so that what
// is the same for all recipients is composed and encoded only once.

/** Text at the even positions, the names of placeholders at the odd ones: `['Hello ', 'name', '!']`. */
export type Pieces = readonly string[]

/** Delimits the name of a placeholder while a text is composed. Text that can be stored never contains it. */
export const PLACEHOLDER_MARK = '\0'

export const placeholder = (name: string) => `${PLACEHOLDER_MARK}${name}${PLACEHOLDER_MARK}`

export const splitAtPlaceholders = (text: string): Pieces => text.split(PLACEHOLDER_MARK)

export const isPlaceholderName = (position: number) => position % 2 === 1

export function fillPieces(pieces: Pieces, fill: (name: string) => string): string {
  let text = pieces[0] ?? ''
  for (let n = 1; n < pieces.length; n += 2) text += fill(pieces[n] as string) + pieces[n + 1]
  return text
}
