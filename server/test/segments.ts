// Makers for tests about segments.

import type { Answer, TestApp } from './app.ts'
import { aName } from './users.ts'

export const tagIs = (key: string, value: string, relation = '=') => ({ field: 'tag', key, relation, value })

/** A segment with a name of its own; its id. */
export async function aSegment(app: TestApp, filters: object[], more: object = {}): Promise<string> {
  const answer = await app.app('/segments', { body: { name: aName('segment'), filters, ...more } })
  if (answer.status !== 201) throw new Error(`no new segment: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer.body.id
}

export const viewSegment = async (app: TestApp, id: string) =>
  (await app.app(`/segments/${id}?include-segment-detail=true`)).body

export const DEFAULT_NAMES = [
  'Subscribed Users',
  'Active Users',
  'Engaged Users',
  'Inactive Users',
  'Total Subscriptions',
]

export const namesOf = ({ body }: Answer): string[] => body.segments.map(({ name }: { name: string }) => name)

export const refused = (status: number, ...errors: string[]) => ({ status, body: { success: false, errors } })
