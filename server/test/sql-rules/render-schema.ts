import type { Catalogue, Table } from './catalogue.ts'

/** The whole schema as one text for people, the same for the same schema whatever made it. */
export function renderSchema(catalogue: Catalogue): string {
  const parts = catalogue.tables.map((table) => renderTable(table, catalogue))
  const others = catalogue.others.map(({ kind, name }) => `-- ${kind} ${name}`)
  return `${[HEAD, ...parts, ...(others.length > 0 ? [others.join('\n')] : [])].join('\n\n')}\n`
}

const HEAD = `-- The schema that the migrations add up to, for reading and for review. Written by a test:
-- UPDATE_SNAPSHOT=1 npx vitest run server/test/schema.test.ts`

function renderTable(table: Table, { columns, constraints, indexes, triggers }: Catalogue): string {
  const { name, isUnlogged, parent, bounds, partitionKey, options } = table
  const isOurs = (it: { tableName: string }) => it.tableName === name
  const lines = [
    ...columns.filter(isOurs).map((column) => {
      const { type, isRequired, isGenerated, default: value } = column
      const filled = value === null ? '' : isGenerated ? ` generated always as (${value}) stored` : ` default ${value}`
      return `${column.name} ${type}${isRequired ? ' not null' : ''}${filled}`
    }),
    ...constraints.filter(isOurs).map((it) => `constraint ${it.name} ${it.definition}`),
  ]
  const head = `create ${isUnlogged ? 'unlogged ' : ''}table ${name}`
  const tail = [
    ...(parent === null ? [] : [`partition of ${parent} ${bounds ?? ''}`.trim()]),
    ...(partitionKey === null ? [] : [`partition by ${partitionKey}`]),
    ...(options.length === 0 ? [] : [`with (${options.toSorted().join(', ')})`]),
  ]
  return [
    `${head} (\n${lines.map((line) => `  ${line}`).join(',\n')}\n)${tail.map((it) => ` ${it}`).join('')};`,
    ...indexes.filter((it) => isOurs(it) && !it.isOfConstraint).map((it) => `${it.definition};`),
    ...triggers.filter(isOurs).map((it) => `-- trigger ${it.name}`),
  ].join('\n')
}
