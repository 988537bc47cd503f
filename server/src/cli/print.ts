// Plain, aligned text for people; programs use --json.

/** Formats rows under a heading, each column as wide as its widest cell. */
export const table = (heading: string[], rows: string[][]): string => align([heading, ...rows])

/** Formats names and values, one pair per line. */
export const fields = (pairs: [string, string][]): string => align(pairs)

function align(rows: string[][]): string {
  const columns = Math.max(...rows.map((row) => row.length))
  const widths = Array.from({ length: columns }, (_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)))
  return rows
    .map((row) =>
      row
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

export const count = (number: number, noun: string, nouns = `${noun}s`) => `${number} ${number === 1 ? noun : nouns}`

export const onOff = (isOn: boolean) => (isOn ? 'on' : 'off')
