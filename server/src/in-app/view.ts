// An in-app message with its counts, for its author.

import type { AppId } from '../lib/ids.ts'
import { getSegmentsById } from '../segments/read.ts'
import type { Db } from '../storage/db.ts'
import { findInteractionCounts, type InteractionCount } from './interaction-store.ts'
import { type InAppMessageId, type InAppVariant, inAppMessageNotFound, messageObject } from './message.ts'
import type { InAppStats } from './schema.ts'
import { findMessage, findVariants } from './store.ts'

export async function viewInAppMessage({ db }: { db: Db }, appId: AppId, id: InAppMessageId) {
  const message = await findMessage(db, appId, id)
  if (!message) throw inAppMessageNotFound()
  const variants = await findVariants(db, appId, id)
  const segments = [...message.includedSegments, ...message.excludedSegments]
  const known = await getSegmentsById({ db }, appId, segments)
  return {
    ...messageObject(message, variants),
    missing_segments: segments.filter((id) => !known.has(id)),
    stats: statsOf(await findInteractionCounts(db, appId, id), variants),
  }
}

function statsOf(counts: readonly InteractionCount[], variants: readonly InAppVariant[]): InAppStats {
  const counted = (what: InteractionCount['what'], part: InteractionCount['part'], label: string) => {
    const found = counts.find((it) => it.what === what && it.part === part && it.label === label)
    return { total: found?.total ?? 0, unique: found?.uniques ?? 0 }
  }
  const targets = (what: InteractionCount['what']) =>
    counts.flatMap((it) =>
      it.what === what && it.part === 'target' ? [{ id: it.label, total: it.total, unique: it.uniques }] : [],
    )
  return {
    impressions: counted('impression', 'message', ''),
    clicks: counted('click', 'message', ''),
    page_impressions: counted('page', 'message', ''),
    variants: variants.map(({ id, language }) => ({
      id,
      language,
      impressions: counted('impression', 'variant', id),
      clicks: counted('click', 'variant', id),
    })),
    buttons: targets('click'),
    pages: targets('page'),
  }
}
