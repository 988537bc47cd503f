// A statement consists of text and values, kept apart until PostgreSQL combines them: no value can get into the text.

import { nextTurn } from '../lib/event-loop.ts'

export class Sql {
  readonly text: string
  readonly values: readonly unknown[]
  constructor(text: string, values: readonly unknown[]) {
    this.text = text
    this.values = values
  }
}

/** sql`select … where app_id = ${appId} and ${condition}`: nested fragments are inserted, everything else is bound. */
export function sql(strings: TemplateStringsArray, ...parts: unknown[]): Sql {
  let text = strings[0] ?? ''
  const values: unknown[] = []
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i]
    if (part instanceof Sql) {
      const shift = values.length
      text += shift === 0 ? part.text : part.text.replace(/\$(\d+)/g, (_, n) => `$${Number(n) + shift}`)
      values.push(...part.values)
    } else {
      values.push(part)
      text += `$${values.length}`
    }
    text += strings[i + 1] ?? ''
  }
  return new Sql(text, values)
}

/** Joins fragments in one pass: joining a list of hundreds pairwise would rewrite it hundreds of times. */
export function joined(parts: readonly Sql[], separator: string): Sql {
  const values: unknown[] = []
  const texts = parts.map((part) => {
    const shift = values.length
    values.push(...part.values)
    return part.text.replace(/\$(\d+)/g, (_, n) => `$${Number(n) + shift}`)
  })
  return new Sql(texts.join(separator), values)
}

export const emptySql = new Sql('', [])

/**
 * Encodes rows as one jsonb parameter for `jsonb_to_recordset`: any number of rows is one statement and one plan. Dates
 * are serialized here, each distinct one once: rows share most of theirs, and V8 takes five times as long for a list
 * that contains dates.
 */
export function rows(list: readonly object[]): string {
  const known = new Map<number, string | null>()
  return JSON.stringify(list.map((row) => withoutDates(row as Record<string, unknown>, known)))
}

/** Encoding this many rows takes about 5 ms of the event loop. */
const ROWS_PER_TURN = 1_000

/** The same for lists that may be long: other work is served between the turns. */
export async function rowsInTurns(list: readonly object[], size = ROWS_PER_TURN, pause = nextTurn): Promise<string> {
  const parts: string[] = []
  for (let i = 0; i < list.length; i += size) {
    if (i > 0) await pause()
    parts.push(rows(list.slice(i, i + size)).slice(1, -1))
  }
  return `[${parts.join(',')}]`
}

function withoutDates(row: Record<string, unknown>, known: Map<number, string | null>): Record<string, unknown> {
  let copy: Record<string, unknown> | undefined
  for (const name in row) {
    const value = row[name]
    if (!(value instanceof Date)) continue
    const ms = value.getTime()
    let text = known.get(ms)
    if (text === undefined) {
      text = value.toJSON()
      known.set(ms, text)
    }
    copy ??= { ...row }
    copy[name] = text
  }
  return copy ?? row
}

const camel = (column: string) => column.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
const camelNames = new Map<string, string>()

/** Columns are snake_case, TypeScript is camelCase; only this function translates. */
export function camelCase(column: string): string {
  let name = camelNames.get(column)
  if (name === undefined) {
    name = camel(column)
    camelNames.set(column, name)
  }
  return name
}
