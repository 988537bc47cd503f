// Writes lines of CSV as in RFC 4180, safe to open in a spreadsheet.

export type Cell = string | number | null | undefined

/** Text that a spreadsheet would interpret as a formula. Numbers are not checked, because they are safe. */
const FORMULA = /^[=+\-@\t\r\n]/
const NEEDS_QUOTES = /[",\r\n]/

function cellText(cell: Cell): string {
  if (cell === null || cell === undefined) return ''
  if (typeof cell === 'number') return String(cell)
  const text = FORMULA.test(cell) ? `'${cell}` : cell
  return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export const csvLine = (cells: readonly Cell[]) => `${cells.map(cellText).join(',')}\r\n`
