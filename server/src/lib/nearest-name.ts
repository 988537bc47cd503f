// Guesses what was meant by a name that does not exist.

/**
 * The name that is spelled most like the given one, or undefined if none is close. Ignores case and separators; apart
 * from that, tolerates about one mistake in four letters, and at most three.
 */
export function nearestName(given: string, names: Iterable<string>): string | undefined {
  const wanted = plain(given)
  const forgiven = Math.min(3, Math.floor(wanted.length / 4))
  let nearest: string | undefined
  let least = forgiven + 1
  for (const name of names) {
    const candidate = plain(name)
    if (Math.abs(candidate.length - wanted.length) >= least) continue
    const distance = editDistance(wanted, candidate)
    if (distance < least) [nearest, least] = [name, distance]
  }
  return nearest
}

const plain = (name: string) => name.toLowerCase().replaceAll(/[^a-z0-9]/g, '')

/** The number of letters to add, remove or replace, or of neighbours to swap, to turn one into the other. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1]
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      row[j] = Math.min(
        (last[j] as number) + 1,
        (row[j - 1] as number) + 1,
        (last[j - 1] as number) + (isSame ? 0 : 1),
        isSwapped ? (beforeLast[j - 2] as number) + 1 : Number.POSITIVE_INFINITY,
      )
    }
    beforeLast = last
    last = row
  }
  return last[b.length] as number
}
