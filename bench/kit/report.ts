import { writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'

export type Row = { name: string; ratio: number | null; goal: number | null } & Record<string, number | string | null>

export const median = (values: number[]): number => {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] as number
}

export const p99 = (values: number[]) => values.toSorted((a, b) => a - b)[Math.ceil(values.length * 0.99) - 1] as number

export const round = (value: number, digits = 2) => Number(value.toFixed(digits))

export function readOptions<Names extends string>(numbers: Record<Names, number>) {
  const { values } = parseArgs({
    options: {
      json: { type: 'string' },
      readme: { type: 'boolean', default: false },
      ...Object.fromEntries(Object.keys(numbers).map((name) => [name, { type: 'string' as const }])),
    },
  })
  const given = values as Record<string, string | boolean | undefined>
  const read = Object.fromEntries(
    Object.entries<number>(numbers).map(([name, fallback]) => [name, Number(given[name] ?? fallback)]),
  )
  return { json: values.json, readme: values.readme === true, ...(read as Record<Names, number>) }
}

/** As a table that reads well in a terminal and in Markdown. */
export function table(rows: Row[]): string {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))]
  const cells = [
    columns,
    columns.map(() => '-'),
    ...rows.map((row) => columns.map((column) => String(row[column] ?? ''))),
  ]
  const widths = columns.map((_, i) => Math.max(...cells.map((line) => (line[i] as string).length)))
  return cells
    .map(
      (line, n) =>
        `| ${line.map((cell, i) => (n === 1 ? '-'.repeat(widths[i] as number) : cell.padEnd(widths[i] as number))).join(' | ')} |`,
    )
    .join('\n')
}

export async function report(rows: Row[], json: string | undefined) {
  console.log(`\n${table(rows)}\n`)
  for (const { name, ratio, goal } of rows)
    if (goal !== null && ratio !== null && ratio < goal) console.log(`below its goal: ${name} ${ratio} < ${goal}`)
  if (json) await writeFile(json, `${JSON.stringify(rows, null, 2)}\n`)
}
