// What the schemas of journeys are made of.

import Type, { type TSchema } from 'typebox'
import { EVENT_OPERATORS } from '../nodes/node.ts'

export const uuid = (description?: string) => ({ type: 'string', format: 'uuid', ...(description && { description }) })
export const uuids = (description?: string) => ({ type: 'array', items: uuid(), ...(description && { description }) })
export const text = (maxLength: number, description?: string) => ({
  type: 'string',
  maxLength,
  ...(description && { description }),
})
export const time = (description?: string) => ({
  type: ['string', 'null'],
  format: 'date-time',
  ...(description && { description }),
})
export const flag = (description?: string) => ({ type: 'boolean', default: false, ...(description && { description }) })
export const object = (properties: object, required: string[] = [], more: object = {}) => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
  ...more,
})
export const tags = (description: string) => ({
  type: 'object',
  additionalProperties: text(1_024),
  description,
})
export const schema = (it: object): TSchema => Type.Unsafe(it as never)

export const attributes = {
  type: 'array',
  maxItems: 1,
  description: 'One group at most, all of which must hold.',
  items: {
    type: 'array',
    items: object(
      {
        key: text(255),
        operator: { enum: [...EVENT_OPERATORS] },
        value: text(1_024, 'Not for exists and not_exists.'),
      },
      ['key', 'operator'],
    ),
  },
}
