// Reads what Liquid knows as `dynamic_content`: a field of the template that holds JSON or CSV as text.

import { invalid } from '../lib/errors.ts'
import { parseCsv } from './parse-csv.ts'

const MAX_BYTES = 200_000
/** The same limit as for requests. Unlimited nesting could not be sent to a rendering process. */
const MAX_DEPTH = 32

const refused = (title: string) => invalid(`dynamic_content ${title}`, { field: 'dynamic_content' })

export function readDynamicContent(text: string | null | undefined): Record<string, unknown> {
  if (text === undefined || text === null || text === '') return {}
  if (Buffer.byteLength(text) > MAX_BYTES) throw refused(`must have at most ${MAX_BYTES} bytes`)
  return /^\s*[[{]/.test(text) ? readJson(text) : readCsv(text)
}

function readJson(text: string): Record<string, unknown> {
  let parsed: Record<string, unknown>
  try {
    parsed = JSON.parse(text)
  } catch {
    throw refused('must be a text that holds a JSON object, or CSV')
  }
  if (isDeeper(parsed, MAX_DEPTH)) throw refused(`can be nested at most ${MAX_DEPTH} deep`)
  return parsed
}

const isDeeper = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1)))

/** A Liquid name; `-` allows for languages such as `zh-Hans`. */
const COLUMN = /^[A-Za-z0-9_-]+$/

/**
 * The first line names the columns, and the first cell of each other line names the row:
 * `dynamic_content.<row>.<column>`. The name of the first column may be left out; if it is present, the row's own name
 * is stored under it.
 */
function readCsv(text: string): Record<string, unknown> {
  const lines = parseCsv(text.replace(/^\uFEFF/, ''))
  if (!lines) throw refused('is not CSV: a cell with quotes in it must stand in quotes, and its own be written twice')
  const [head, ...rest] = lines
  const columns = head?.cells.map((it) => it.trim()) ?? []
  if (columns.length < 2 || rest.length === 0)
    throw refused('must be a JSON object, or CSV with a line of column names and a line for each row')
  for (const [n, column] of columns.entries()) {
    if (!COLUMN.test(column) && (n > 0 || column !== ''))
      throw refused(`has a column without a proper name: column ${n + 1} must be of letters, digits, "_" and "-"`)
    if (columns.indexOf(column) < n) throw refused(`has two columns ${column}`)
  }
  const rows = new Map<string, Record<string, string>>()
  for (const { line, cells } of rest) {
    const name = cells[0]?.trim() ?? ''
    if (cells.length > columns.length) throw refused(`has more cells than columns in line ${line}`)
    if (name === '') throw refused(`has no name for the row in line ${line}: its first cell is empty`)
    if (rows.has(name)) throw refused(`has two rows of the same name: see line ${line}`)
    const values = columns.flatMap((column, n) => (column === '' ? [] : [[column, cells[n] ?? '']]))
    rows.set(name, Object.fromEntries(values))
  }
  return Object.fromEntries(rows)
}
