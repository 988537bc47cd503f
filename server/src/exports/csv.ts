// Lines of a CSV file as RFC 4180 has them, safe to open in a spreadsheet.

export type Cell = string | number | null | undefined

/** What a spreadsheet would take for a formula. Only text is looked at: a number is one. */
const FORMULA = /^[=+\-@\t\r\n]/
const NEEDS_QUOTES = /[",\r\n]/

function cellText(cell: Cell): string {
  if (cell === null || cell === undefined) return ''
  if (typeof cell === 'number') return String(cell)
  const text = FORMULA.test(cell) ? `'${cell}` : cell
  return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export const csvLine = (cells: readonly Cell[]) => `${cells.map(cellText).join(',')}\r\n`
