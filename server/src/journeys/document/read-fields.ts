// Fields that nodes, the audience and the rules of early exit have in common.

import type { SegmentId } from '../../segments/segment.ts'
import { EVENT_OPERATORS, type EventAttribute, type EventMatch } from '../nodes/node.ts'
import { type Fields, isPresent } from './reader.ts'
import type { DocumentReading, Reference } from './reading.ts'

const MAX_SEGMENTS = 50
const MAX_ATTRIBUTES = 50
export const MAX_EVENT_NAME = 255
const MAX_KEY = 255
const MAX_VALUE = 1_024
export const MAX_TAGS = 100

/** The id of something that the journey refers to. */
export function readReference(
  { reader, references }: DocumentReading,
  path: string,
  value: unknown,
  reference: Pick<Reference, 'kind' | 'channel'>,
): string | undefined {
  const id = reader.uuid(path, value)
  if (id !== undefined) references.push({ ...reference, id, path })
  return id
}

export function readSegments(reading: DocumentReading, path: string, value: unknown): SegmentId[] {
  const ids = reading.reader.list(path, value, { most: MAX_SEGMENTS }).flatMap(([path, item]) => {
    const id = reading.reader.uuid(path, item)
    if (id === undefined) return []
    reading.references.push({ kind: 'segment', id, path })
    return [id]
  })
  return [...new Set(ids)]
}

export function readEventMatch({ reader }: DocumentReading, path: string, given: Fields): EventMatch {
  const groups = reader.list(`${path}.attributes`, given.attributes)
  if (groups.length > 1) reader.report(`${path}.attributes`, 'must have one group at most')
  return {
    name: reader.text(`${path}.name`, given.name, MAX_EVENT_NAME) as string,
    attributes: groups
      .slice(0, 1)
      .map(([path, group]) =>
        reader
          .list(path, group, { least: 1, most: MAX_ATTRIBUTES })
          .map(([path, item]) => readAttribute(reader, path, item) as EventAttribute),
      ),
  }
}

function readAttribute(reader: DocumentReading['reader'], path: string, value: unknown): EventAttribute | undefined {
  const given = reader.object(path, value)
  if (!given) return undefined
  const key = reader.text(`${path}.key`, given.key, MAX_KEY) as string
  const operator = reader.oneOf(`${path}.operator`, given.operator, EVENT_OPERATORS)
  if (!operator) return undefined
  if (operator === 'exists' || operator === 'not_exists') return { key, operator }
  const operand = reader.text(`${path}.value`, given.value, MAX_VALUE)
  if (operand !== undefined && /^(less|greater)/.test(operator) && !Number.isFinite(Number(operand)))
    reader.report(`${path}.value`, `must be a number for ${operator}`)
  if (operand !== undefined && /^(before|after)$/.test(operator) && !isTime(operand))
    reader.report(`${path}.value`, `must be an ISO 8601 date, or date and time, for ${operator}`)
  return { key, operator, value: operand as string }
}

const isTime = (text: string) => /^\d{4}-\d\d-\d\d(T|$)/.test(text) && !Number.isNaN(Date.parse(text))

/** Tags to be set on a user; an empty value takes one away. Values may hold Liquid. */
export function readTags(
  { reader, liquidTexts }: DocumentReading,
  path: string,
  value: unknown,
): Record<string, string> {
  const given = isPresent(value) ? reader.object(path, value) : {}
  const entries = Object.entries(given ?? {}).filter(([, value]) => value !== null)
  if (entries.length > MAX_TAGS) reader.report(path, `must have at most ${MAX_TAGS} tags`)
  for (const [key, value] of entries.slice(0, MAX_TAGS)) {
    const here = `${path}.${key.slice(0, MAX_KEY)}`
    if (reader.text(`a key of ${path}`, key, MAX_KEY) === undefined) continue
    if (typeof value !== 'string') reader.report(here, 'must be a string')
    else if (value !== '' && reader.text(here, value, MAX_VALUE) !== undefined)
      liquidTexts[here] = { kind: 'text', text: value }
  }
  return Object.fromEntries(entries) as Record<string, string>
}
