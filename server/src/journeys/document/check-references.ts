// Everything that a journey refers to must exist: one statement for each kind of thing. The rows are locked until the transaction
// ends, so that nobody deletes them meanwhile.

import { lockMessagesForShare } from '../../in-app/store.ts'
import type { AppId } from '../../lib/ids.ts'
import { isDefaultId } from '../../segments/segment.ts'
import { lockSegmentsForShare } from '../../segments/store.ts'
import type { Db } from '../../storage/db.ts'
import { lockTemplatesForShare } from '../../templates/store.ts'
import { lockWebhooksForShare } from '../webhooks/store.ts'
import type { Reference, ReferenceKind } from './reading.ts'

const NOUNS: Record<ReferenceKind, string> = {
  segment: 'a segment',
  template: 'a template',
  webhook: 'a journey webhook',
  iam: 'an in-app message',
}

/** What is wrong with each broken reference. */
export async function findBrokenReferences(
  db: Db,
  appId: AppId,
  references: readonly Reference[],
): Promise<{ reference: Reference; demand: string }[]> {
  const idsOf = (kind: ReferenceKind) =>
    [...new Set(references.filter((reference) => reference.kind === kind).map(({ id }) => id))].sort()
  const stored = idsOf('segment').filter((id) => !isDefaultId(appId, id))
  const templates = new Map(
    (await held(idsOf('template'), (ids) => lockTemplatesForShare(db, appId, ids))).map((it) => [it.id, it]),
  )
  const found: Record<ReferenceKind, ReadonlySet<string>> = {
    segment: new Set((await held(stored, (ids) => lockSegmentsForShare(db, appId, ids))).map(({ id }) => id)),
    template: new Set(templates.keys()),
    webhook: new Set((await held(idsOf('webhook'), (ids) => lockWebhooksForShare(db, appId, ids))).map(({ id }) => id)),
    iam: new Set((await held(idsOf('iam'), (ids) => lockMessagesForShare(db, appId, ids))).map(({ id }) => id)),
  }
  return references.flatMap((reference) => {
    const { kind, id, channel } = reference
    if (kind === 'segment' && isDefaultId(appId, id)) return []
    if (!found[kind].has(id)) return [{ reference, demand: `names ${NOUNS[kind]} that is not there` }]
    const actual = templates.get(id)?.channel
    if (channel !== undefined && actual !== channel)
      return [{ reference, demand: `must name a template for ${channel}; this one is for ${actual ?? 'nothing'}` }]
    return []
  })
}

const held = async <Row>(ids: string[], hold: (ids: string[]) => Promise<Row[]>) => (ids.length > 0 ? hold(ids) : [])
