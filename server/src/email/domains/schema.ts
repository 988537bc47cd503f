// The wire shapes of sending domains.

import Type, { type Static } from 'typebox'
import { type Algorithm, algorithms, domainStates } from './domain.ts'
import { recordPurposes } from './records.ts'

const oneOf = <Word extends string>(words: readonly Word[], description?: string) =>
  Type.Unsafe<Word>({ type: 'string', enum: [...words], ...(description && { description }) })
const hostOrNull = (description: string) =>
  Type.Optional(Type.Unsafe<string | null>({ type: ['string', 'null'], maxLength: 253, description }))
const timeOrNull = (description: string) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'date-time', description })

export const AppPath = Type.Object({ app_id: Type.String() })
export const DomainPath = Type.Object({ app_id: Type.String(), domain: Type.String() })

export const NewDomainBody = Type.Object({
  domain: Type.String({ minLength: 1, maxLength: 253, description: 'As news.example.com.' }),
  return_path_host: hostOrNull('The host that receives bounces. Defaults to bounce.<domain>.'),
  tracking_host: hostOrNull('The host of links in emails. Defaults to the server’s own address.'),
  dkim: Type.Optional(
    Type.Unsafe<{ algorithms?: Algorithm[] | null } | null>({
      type: ['object', 'null'],
      properties: {
        algorithms: {
          type: ['array', 'null'],
          minItems: 1,
          maxItems: 2,
          items: { type: 'string', enum: [...algorithms] },
          description: 'One key is made for each. Defaults to both. Some receivers support RSA only.',
        },
      },
    }),
  ),
})
export type NewDomainBody = Static<typeof NewDomainBody>

const force = (what: string) =>
  Type.Optional(
    Type.Unsafe<boolean | null>({
      type: ['boolean', 'null'],
      description: `${what} although DNS does not show the records; for organization keys alone.`,
    }),
  )
export const DomainStateBody = Type.Object({
  state: oneOf(['active', 'paused'] as const),
  force: force('Active'),
})
export const RotateBody = Type.Object({ force: force('Switch') })

const DnsRecordObject = Type.Object({
  purpose: oneOf(recordPurposes),
  type: oneOf(['TXT', 'MX', 'CNAME'] as const),
  name: Type.String(),
  value: Type.String(),
  required: Type.Boolean({ description: 'Whether the domain waits for it before it becomes active.' }),
  state: oneOf(['unchecked', 'ok', 'missing', 'wrong', 'unknown'] as const, '`unknown`: DNS did not answer in time.'),
  found: Type.Unsafe<string | null>({ type: ['string', 'null'], description: 'What DNS has in its place.' }),
})

export const DomainAnswer = Type.Object({
  domain: Type.String(),
  state: oneOf(domainStates, '`pending`: its records are waited for.'),
  activated_by: Type.Unsafe<string | null>({
    type: ['string', 'null'],
    enum: ['check', 'force', 'catch', 'load', null],
    description: '`catch` and `load` (mail was caught, events loaded) let no mail out.',
  }),
  return_path_host: Type.String(),
  tracking_host: Type.Unsafe<string | null>({ type: ['string', 'null'] }),
  dkim: Type.Array(
    Type.Object({
      selector: Type.String(),
      algorithm: oneOf(algorithms),
      state: oneOf(['active', 'next', 'retired'] as const),
      created_at: Type.String({ format: 'date-time' }),
    }),
  ),
  records: Type.Array(DnsRecordObject, { description: 'What has to be in DNS.' }),
  checked_at: timeOrNull('When DNS was last asked.'),
  created_at: Type.String({ format: 'date-time' }),
  updated_at: Type.String({ format: 'date-time' }),
})
export type DomainAnswer = Static<typeof DomainAnswer>
export const DomainsAnswer = Type.Object({ domains: Type.Array(DomainAnswer) })
export const DoneAnswer = Type.Object({ success: Type.Boolean() })
