// The wire shapes of the suppression list.

import Type, { type Static } from 'typebox'
import { type SuppressionReason, suppressionReasons } from './store.ts'

const reason = (words: readonly SuppressionReason[]) =>
  Type.Unsafe<SuppressionReason>({ type: 'string', enum: [...words] })

export const AppPath = Type.Object({ app_id: Type.String() })
export const AddressPath = Type.Object({ app_id: Type.String(), address: Type.String() })

export const SuppressionsQuery = Type.Object({
  limit: Type.Integer({ minimum: 1, maximum: 1_000, default: 100 }),
  cursor: Type.Optional(Type.String({ maxLength: 400, description: 'next_cursor of the page before.' })),
  address: Type.Optional(Type.String({ maxLength: 254, description: 'This address alone, in any case.' })),
  reason: Type.Optional(reason(suppressionReasons)),
})
export type SuppressionsQuery = Static<typeof SuppressionsQuery>

export const NewSuppressionsBody = Type.Object({
  address: Type.Optional(Type.Unsafe<string | null>({ type: ['string', 'null'], maxLength: 254 })),
  addresses: Type.Optional(
    Type.Unsafe<string[] | null>({
      type: ['array', 'null'],
      minItems: 1,
      maxItems: 1_000,
      items: { type: 'string', maxLength: 254 },
    }),
  ),
  reason: Type.Optional(
    Type.Unsafe<'manual' | 'imported' | null>({
      enum: ['manual', 'imported', null],
      description: 'Defaults to `manual` for one address and `imported` for a list.',
    }),
  ),
  detail: Type.Optional(Type.Unsafe<string | null>({ type: ['string', 'null'], maxLength: 500 })),
})
export type NewSuppressionsBody = Static<typeof NewSuppressionsBody>

export const SuppressionsAnswer = Type.Object({
  suppressions: Type.Array(
    Type.Object({
      address: Type.String(),
      reason: reason(suppressionReasons),
      detail: Type.Unsafe<string | null>({ type: ['string', 'null'] }),
      created_at: Type.String({ format: 'date-time' }),
      created_by: Type.Unsafe<string | null>({
        type: ['string', 'null'],
        description: 'The key that added it; null: the server did.',
      }),
    }),
  ),
  next_cursor: Type.Unsafe<string | null>({ type: ['string', 'null'], description: 'Null on the last page.' }),
})
export type SuppressionsAnswer = Static<typeof SuppressionsAnswer>
export const AddedAnswer = Type.Object({ added: Type.Integer({ description: 'Those that were not there yet.' }) })
export const DoneAnswer = Type.Object({ success: Type.Boolean() })
