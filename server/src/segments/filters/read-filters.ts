// Filters as they come over the wire: a flat list in which neighbours are joined by AND, AND binds tighter than OR, and
// a group stands for parentheses. Every error names the entry that it is about.

import { type AppError, invalid } from '../../lib/errors.ts'
import { readField } from './fields.ts'
import type { Filter, Node } from './tree.ts'

export const MAX_ENTRIES = 200
const MAX_DEPTH = 10

export type Filters = {
  tree: Node
  /** As given, without fields that mean nothing: what is stored, and reads back the same. */
  filters: Filter[]
}

export function readFilters(given: unknown): Filters {
  const count = { entries: 0 }
  return readList(given, 'filters', 1, count)
}

function readList(given: unknown, place: string, depth: number, count: { entries: number }): Filters {
  if (!Array.isArray(given)) throw wrong(place, 'must be a list')
  if (given.length === 0) throw wrong(place, 'must have at least one filter')
  if (depth > MAX_DEPTH) throw wrong(place, `groups can be nested at most ${MAX_DEPTH} deep`)
  count.entries += given.length
  if (count.entries > MAX_ENTRIES)
    throw wrong('filters', `must have at most ${MAX_ENTRIES} entries, operators and groups included`)

  const alternatives: Node[][] = [[]]
  let afterOperator = false
  const filters = given.map((item: unknown, i): Filter => {
    const entry = `${place}[${i}]`
    if (typeof item !== 'object' || item === null || Array.isArray(item)) throw wrong(entry, 'must be an object')
    const filter = item as Filter
    if (filter.operator !== undefined && filter.operator !== null) {
      const operator = readOperator(filter, entry)
      if (i === 0) throw wrong(entry, 'a list cannot begin with an operator')
      if (afterOperator) throw wrong(entry, 'an operator cannot follow another one')
      if (i === given.length - 1) throw wrong(entry, 'a list cannot end with an operator')
      if (operator === 'OR') alternatives.push([])
      afterOperator = true
      return { operator }
    }
    afterOperator = false
    const { node, cleaned } = readItem(filter, entry, depth, count)
    ;(alternatives.at(-1) as Node[]).push(node)
    return cleaned
  })
  return {
    tree: simplest(
      'any',
      alternatives.map((nodes) => simplest('all', nodes)),
    ),
    filters,
  }
}

function readItem(
  filter: Filter,
  entry: string,
  depth: number,
  count: { entries: number },
): { node: Node; cleaned: Filter } {
  if (filter.group !== undefined && filter.group !== null) {
    if (filter.field !== undefined && filter.field !== null) throw wrong(entry, 'cannot be both a group and a filter')
    const { tree, filters } = readList(filter.group, `${entry}.group`, depth + 1, count)
    return { node: tree, cleaned: { group: filters } }
  }
  const { filter: cleaned, field, key, test } = readField(filter, entry)
  return { node: { kind: 'clause', entry, filter: cleaned, field, key, test }, cleaned }
}

function readOperator({ operator, field, group }: Filter, entry: string): 'AND' | 'OR' {
  if ((field ?? group ?? null) !== null) throw wrong(entry, 'cannot be both an operator and a filter')
  if (operator !== 'AND' && operator !== 'OR') throw wrong(entry, 'operator must be "AND" or "OR"')
  return operator
}

const simplest = (kind: 'all' | 'any', of: Node[]): Node => (of.length === 1 ? (of[0] as Node) : { kind, of })

const wrong = (entry: string, says: string): AppError => invalid(`${entry}: ${says}`, { field: entry })
