// What the schema must be like so that it can be distributed by app_id with no change.

import type { Catalogue } from './catalogue.ts'
import type { KnownTables, Violation } from './statement-rules.ts'

export type SchemaRule =
  | 'app_id in every table'
  | 'app_id leads every key'
  | 'app_id in every foreign key'
  | 'actions that can be distributed'
  | 'no triggers'
  | 'names of our own'
  | 'ids are made by us'
  | 'ids are uuids'
  | 'timestamptz only'
  | 'time is a parameter'
  | 'one level of partitions'
  | 'no foreign keys on bulk'

export type SchemaException = { name: string; rules: readonly SchemaRule[] }

/** Rows that are written by the million; whoever must spread one app over nodes spreads these. */
const BULK = new Set(['deliveries', 'events'])
const DEFAULT_NAME = /_(pkey|key\d*|fkey\d*|check\d*|excl\d*|idx\d*)$/

export function knownTables({ tables, constraints }: Catalogue, global: readonly string[]): KnownTables {
  const names = tables.map(({ name }) => name)
  const parents = new Map<string, string[]>()
  for (const { tableName, foreignTable } of constraints)
    if (foreignTable !== null) parents.set(tableName, [...(parents.get(tableName) ?? []), foreignTable])
  return {
    ofApps: new Set(names.filter((name) => !global.includes(name))),
    global: new Set(names.filter((name) => global.includes(name))),
    parents,
  }
}

/** Violations by the name of the table, or of `table.column`, that they are about. */
export function checkSchema(
  catalogue: Catalogue,
  global: readonly string[],
): (Violation<SchemaRule> & { name: string })[] {
  const violations: (Violation<SchemaRule> & { name: string })[] = []
  const add = (name: string, rule: SchemaRule, says: string) => violations.push({ name, rule, says })
  const isGlobal = (table: string) => global.includes(table)
  const keyOf = (table: string) => (table === 'apps' ? 'id' : 'app_id')

  for (const { name, parent, kind, partitionKey, hasRowSecurity } of catalogue.tables) {
    if (hasRowSecurity) add(name, 'no triggers', 'row security depends on settings that do not reach other nodes')
    if (parent !== null && kind === 'partitioned table')
      add(name, 'one level of partitions', 'a partition cannot have partitions')
    const isPartition = catalogue.tables.some((it) => it.name === parent && it.partitionKey !== null)
    if (parent !== null && !isPartition) add(name, 'one level of partitions', `inherits from ${parent}`)
    if (partitionKey !== null && !partitionKey.startsWith('RANGE'))
      add(name, 'one level of partitions', 'partitions are by time')
    if (isGlobal(name)) continue
    const column = catalogue.columns.find((it) => it.tableName === name && it.name === keyOf(name))
    if (column?.type !== 'uuid' || !column.isRequired)
      add(name, 'app_id in every table', `has no "${keyOf(name)} uuid not null"`)
  }

  for (const { tableName, name, isUnique, columns, isOfConstraint } of catalogue.indexes) {
    if (isUnique && !isGlobal(tableName) && columns[0] !== keyOf(tableName))
      add(tableName, 'app_id leads every key', `${name} does not begin with ${keyOf(tableName)}`)
    if (!isOfConstraint && DEFAULT_NAME.test(name))
      add(tableName, 'names of our own', `the index ${name} has a made-up name`)
  }

  for (const constraint of catalogue.constraints) {
    const { tableName, name, kind, columns, foreignTable, foreignColumns, onDelete, onUpdate } = constraint
    if (DEFAULT_NAME.test(name)) add(tableName, 'names of our own', `the constraint ${name} has a made-up name`)
    if (kind === 'exclusion' && columns[0] !== keyOf(tableName))
      add(tableName, 'app_id leads every key', `${name} does not begin with ${keyOf(tableName)}`)
    if (kind === 'trigger') add(tableName, 'no triggers', `${name} is a trigger`)
    if (foreignTable === null) continue
    if (BULK.has(tableName) || BULK.has(foreignTable))
      add(tableName, 'no foreign keys on bulk', `${name} ties it to ${foreignTable}`)
    const isTogether =
      isGlobal(foreignTable) ||
      (!isGlobal(tableName) &&
        columns.some((column, i) => column === keyOf(tableName) && foreignColumns[i] === keyOf(foreignTable)))
    if (!isTogether) add(tableName, 'app_id in every foreign key', `${name} does not carry the app`)
    if (!['no action', 'restrict', 'cascade'].includes(onDelete))
      add(tableName, 'actions that can be distributed', `${name}: on delete ${onDelete}`)
    if (!['no action', 'restrict'].includes(onUpdate))
      add(tableName, 'actions that can be distributed', `${name}: on update ${onUpdate}`)
  }

  for (const { tableName, name, type, isIdentity, default: value } of catalogue.columns) {
    const at = `${tableName}.${name}`
    if (isIdentity || /nextval/.test(value ?? '')) add(at, 'ids are made by us', 'is numbered by the database')
    if (/(^|_)ids?$/.test(name) && !/^uuid(\[\])?$/.test(type)) add(at, 'ids are uuids', `is ${type}`)
    if (/^(date|time|timestamp)\b/.test(type) && !/^timestamp with time zone(\[\])?$/.test(type))
      add(at, 'timestamptz only', `is ${type}`)
    if (/\b(now|clock_timestamp|gen_random_uuid|random|current_\w+|uuidv[47])\b/i.test(value ?? ''))
      add(at, 'time is a parameter', `has the default ${value}`)
  }

  for (const { tableName, name } of catalogue.triggers) add(tableName, 'no triggers', `${name} is a trigger or a rule`)
  return violations
}
