// Reads filters from their wire format: a flat list in which neighbors are joined by AND, AND binds tighter than OR,
// and a group stands for parentheses. Every error names the entry that it concerns.

import { type AppError, invalid } from '../../lib/errors.ts'
import { readFilterField } from './fields.ts'
import type { FilterNode, SegmentFilter } from './tree.ts'

export const MAX_ENTRIES = 200
const MAX_DEPTH = 10

export type ParsedFilters = {
  tree: FilterNode
  /** The filters without meaningless fields. This is what is stored, and reading it again yields the same. */
  filters: SegmentFilter[]
}

export function readFilters(given: unknown): ParsedFilters {
  const count = { entries: 0 }
  return readFilterList(given, 'filters', 1, count)
}

function readFilterList(given: unknown, place: string, depth: number, count: { entries: number }): ParsedFilters {
  if (!Array.isArray(given)) throw filterError(place, 'must be a list')
  if (given.length === 0) throw filterError(place, 'must have at least one filter')
  if (depth > MAX_DEPTH) throw filterError(place, `groups can be nested at most ${MAX_DEPTH} deep`)
  count.entries += given.length
  if (count.entries > MAX_ENTRIES)
    throw filterError('filters', `must have at most ${MAX_ENTRIES} entries, operators and groups included`)

  const alternatives: FilterNode[][] = [[]]
  let afterOperator = false
  const filters = given.map((item: unknown, i): SegmentFilter => {
    const entry = `${place}[${i}]`
    if (typeof item !== 'object' || item === null || Array.isArray(item)) throw filterError(entry, 'must be an object')
    const filter = item as SegmentFilter
    if (filter.operator !== undefined && filter.operator !== null) {
      const operator = readOperator(filter, entry)
      if (i === 0) throw filterError(entry, 'a list cannot begin with an operator')
      if (afterOperator) throw filterError(entry, 'an operator cannot follow another one')
      if (i === given.length - 1) throw filterError(entry, 'a list cannot end with an operator')
      if (operator === 'OR') alternatives.push([])
      afterOperator = true
      return { operator }
    }
    afterOperator = false
    const { node, cleaned } = readItem(filter, entry, depth, count)
    ;(alternatives.at(-1) as FilterNode[]).push(node)
    return cleaned
  })
  return {
    tree: simplify(
      'any',
      alternatives.map((nodes) => simplify('all', nodes)),
    ),
    filters,
  }
}

function readItem(
  filter: SegmentFilter,
  entry: string,
  depth: number,
  count: { entries: number },
): { node: FilterNode; cleaned: SegmentFilter } {
  if (filter.group !== undefined && filter.group !== null) {
    if (filter.field !== undefined && filter.field !== null)
      throw filterError(entry, 'cannot be both a group and a filter')
    const { tree, filters } = readFilterList(filter.group, `${entry}.group`, depth + 1, count)
    return { node: tree, cleaned: { group: filters } }
  }
  const { filter: cleaned, field, key, test } = readFilterField(filter, entry)
  return { node: { kind: 'clause', entry, filter: cleaned, field, key, test }, cleaned }
}

function readOperator({ operator, field, group }: SegmentFilter, entry: string): 'AND' | 'OR' {
  if ((field ?? group ?? null) !== null) throw filterError(entry, 'cannot be both an operator and a filter')
  if (operator !== 'AND' && operator !== 'OR') throw filterError(entry, 'operator must be "AND" or "OR"')
  return operator
}

const simplify = (kind: 'all' | 'any', of: FilterNode[]): FilterNode =>
  of.length === 1 ? (of[0] as FilterNode) : { kind, of }

const filterError = (entry: string, says: string): AppError => invalid(`${entry}: ${says}`, { field: entry })
