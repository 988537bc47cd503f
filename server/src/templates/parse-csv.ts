// Parses CSV as in RFC 4180: a quoted cell may contain commas, line breaks, and quotes written twice.

export type CsvLine = { line: number; cells: string[] }

/** Undefined when a quote appears in an unquoted cell or is never closed. Empty lines are skipped. */
export function parseCsv(text: string): CsvLine[] | undefined {
  const cell = /(?:"([^"]*(?:""[^"]*)*)"|([^",\r\n]*))(,|\r\n|\n|\r|$)/y
  const lines: CsvLine[] = []
  let [line, cells, from]: [number, string[], number] = [1, [], 1]
  for (cell.lastIndex = 0; cell.lastIndex <= text.length; ) {
    const found = cell.exec(text)
    if (!found) return undefined
    const [whole, quoted, plain = '', end = ''] = found
    cells.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'))
    line += whole.match(/\r\n|\n|\r/g)?.length ?? 0
    if (end !== ',') {
      if (cells.some((it) => it !== '')) lines.push({ line: from, cells })
      ;[cells, from] = [[], line]
    }
    if (end === '') break
  }
  return lines
}
