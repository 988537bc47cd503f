// Renders the Liquid in values of tags, with the user as they are now.

import type { AppId } from '../../lib/ids.ts'
import { ownProperty } from '../../lib/own-property.ts'
import { codePoints } from '../../lib/text.ts'
import type { Db } from '../../storage/db.ts'
import { findAppScope } from '../../templates/find-app-scope.ts'
import { buildLiquidScope } from '../../templates/liquid-scope.ts'
import type { RenderItem } from '../../templates/render/renderer.ts'
import { hasLiquid, type TemplateSources } from '../../templates/render/source.ts'
import { loadReferencedUsers } from '../../users/load-store.ts'
import type { TagChange } from '../../users/properties/set-tags.ts'
import type { CompiledJourney } from './compile-journey.ts'
import type { RunsContext } from './context.ts'
import type { RunEvent } from './run.ts'
import { runData } from './run-data.ts'
import type { LockedRun } from './run-store.ts'

/** `metEvents`: by what has just moved it on, which its row does not know yet. */
type Tagged = { run: LockedRun; assignments: Record<string, string>; metEvents: readonly RunEvent[] }

const MAX_VALUE = 1_024

const OF_NO_MESSAGE = { subscription: undefined, template: null, message: null, unsubscribeToken: null }

export async function renderTags(
  { renderer, log }: Pick<RunsContext, 'renderer' | 'log'>,
  db: Db,
  appId: AppId,
  journey: CompiledJourney,
  list: readonly Tagged[],
  now: Date,
): Promise<TagChange[]> {
  const isRendered = ({ assignments }: Tagged) => Object.values(assignments).some(hasLiquid)
  if (!list.some(isRendered)) return list.map(({ run, assignments }) => ({ userId: run.userId, tags: assignments }))
  const items = await itemsFor(db, appId, journey, list.filter(isRendered))
  const known = [...items.keys()]
  const results = await renderer.render(appId, [...items.values()], now, 'bulk')
  const texts = new Map(known.map((it, n) => [it, results[n]]))
  return list.flatMap((it) => {
    if (!isRendered(it)) return [{ userId: it.run.userId, tags: it.assignments }]
    const result = texts.get(it)
    if (!result) return []
    if (!result.ok)
      log.warn(
        { appId, journeyId: journey.id },
        'Kept tags of a user: their Liquid in the journey could not be rendered',
      )
    return result.ok ? [{ userId: it.run.userId, tags: settled(it, result.texts) }] : []
  })
}

/** No item for users who were deleted. */
async function itemsFor(db: Db, appId: AppId, journey: CompiledJourney, list: readonly Tagged[]) {
  const refs = [...new Set(list.map(({ run }) => run.userId))].map((id) => ({ id }))
  const users = await loadReferencedUsers(db, appId, refs, { subscriptions: true, purchases: false })
  const owners = new Map(users.flatMap((user) => (user ? [[user.id, user]] : [])))
  const sender = await findAppScope(db, appId)
  const sources = new Map<Record<string, string>, TemplateSources>()
  const items = new Map<Tagged, RenderItem>()
  for (const it of list) {
    const user = owners.get(it.run.userId)
    if (!user || !sender) continue
    const template = sources.get(it.assignments) ?? sourcesOf(it.assignments)
    sources.set(it.assignments, template)
    const data = runData(journey.name, it.run.entryEvent, [...it.run.metEvents, ...it.metEvents])
    items.set(it, { template, context: buildLiquidScope({ ...sender, ...OF_NO_MESSAGE, user, journey: data }) })
  }
  return items
}

const sourcesOf = (assignments: Record<string, string>): TemplateSources =>
  Object.fromEntries(Object.entries(assignments).map(([key, text]) => [key, { kind: 'text', text }]))

/** Cuts values to the length of a tag. Only a literal "" removes a tag: Liquid that renders nothing keeps the old value. */
const settled = ({ assignments }: Tagged, texts: Record<string, string>) =>
  Object.fromEntries(
    Object.entries(texts)
      .filter(([key, text]) => text !== '' || !hasLiquid(ownProperty(assignments, key) ?? ''))
      .map(([key, text]) => [key, codePoints(text) > MAX_VALUE ? [...text].slice(0, MAX_VALUE).join('') : text]),
  )
