// Composes the message for each recipient: renders its texts and lets the channel make the outgoing message. Content
// without Liquid is made once for all recipients who get the same.

import type { AppId, UserId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { allSources, sourcesFor } from '../../templates/content-sources.ts'
import { type AppScope, findAppScope } from '../../templates/find-app-scope.ts'
import { fingerprintOf } from '../../templates/fingerprint.ts'
import { buildLiquidScope } from '../../templates/liquid-scope.ts'
import type { Rendered, RenderFailure, RenderItem } from '../../templates/render/renderer.ts'
import { hasLiquid, type TemplateSources } from '../../templates/render/source.ts'
import { findSuspensions } from '../../templates/suspension-store.ts'
import { loadReferencedUsers } from '../../users/load-store.ts'
import type { User } from '../../users/user.ts'
import type { ComposedDelivery, MessageChannel, ReadyDelivery, RenderedTexts, ShareContent } from '../engine/channel.ts'
import type { Engine } from '../engine/types.ts'
import { type JobLane, NO_RUN } from '../message.ts'
import type { OutgoingMessage } from '../outgoing-message.ts'
import { type MessageScope, messageScope } from '../scope.ts'
import type { SentMessage } from './store.ts'
import { suspendContent } from './suspend-content.ts'

export type ComposeFailure = ReadyDelivery & { reason: RenderFailure['reason'] }
export type Composition = { composed: ComposedDelivery[]; failed: ComposeFailure[] }

/** `texts` is undefined if rendering failed. */
type RenderedDelivery = ReadyDelivery & {
  texts: RenderedTexts | undefined
  reason?: ComposeFailure['reason'] | undefined
}

export type ComposeInput = { appId: AppId; lane: JobLane; channel: MessageChannel }

export async function compose(
  engine: Engine,
  { appId, lane, channel }: ComposeInput,
  deliveries: readonly ReadyDelivery[],
): Promise<Composition> {
  const cache = createCompositionCache(channel)
  const needsRendering = ({ message }: ReadyDelivery) => attempt(() => cache.hasLiquid(message)) ?? false
  const fixed = deliveries
    .filter((delivery) => !needsRendering(delivery))
    .map((delivery): RenderedDelivery => ({ ...delivery, texts: attempt(() => cache.fixedTexts(delivery)) }))
  const rendered = await render(engine, { appId, lane }, deliveries.filter(needsRendering), cache)
  const now = engine.clock.now()
  const composed: ComposedDelivery[] = []
  const failed: ComposeFailure[] = []
  for (const { texts, reason = 'render_failed', ...delivery } of inOrderOf(deliveries, [...fixed, ...rendered])) {
    const outgoing =
      texts && attempt(() => channel.compose(delivery, texts, { appId, now, share: cache.shareFor(delivery) }))
    if (outgoing) composed.push({ ...delivery, outgoing })
    else failed.push({ ...delivery, reason })
  }
  return { composed, failed }
}

/** Deliveries stay in the order in which they are due. */
function inOrderOf(deliveries: readonly ReadyDelivery[], rendered: readonly RenderedDelivery[]): RenderedDelivery[] {
  const byDue = new Map(rendered.map((delivery) => [delivery.due, delivery]))
  return deliveries.map(({ due }) => byDue.get(due) as RenderedDelivery)
}

/** A message that cannot be composed must not block the others of its shard. */
function attempt<Value>(make: () => Value): Value | undefined {
  try {
    return make()
  } catch {
    return undefined
  }
}

type CompositionCache = ReturnType<typeof createCompositionCache>

/** Lives for one call of `compose`. */
function createCompositionCache({ variesByLanguage = () => true }: MessageChannel) {
  const liquid = new Map<SentMessage, boolean>()
  const sources = new Map<string, TemplateSources>()
  const fingerprints = new Map<string, string>()
  const texts = new Map<string, RenderedTexts>()
  const parts = new Map<string, MessageScope>()
  const contents = new Map<string, OutgoingMessage['content']>()

  const keyOf = ({ due, message: { id, content } }: ReadyDelivery) =>
    variesByLanguage(content) ? `${id} ${due.language ?? ''}` : id

  /** Deliveries of one message in one language share the object: it is sent to the renderer once. */
  const sourcesOf = (delivery: ReadyDelivery) =>
    memoize(sources, keyOf(delivery), () =>
      sourcesFor(delivery.message.content, delivery.message.emailHtml, delivery.due.language),
    )

  return {
    sourcesOf,
    hasLiquid: (message: SentMessage): boolean =>
      memoize(liquid, message, () =>
        Object.values(allSources(message.content, message.emailHtml)).some(({ text }) => hasLiquid(text)),
      ),
    /** Shared for the same reason as the sources. */
    partsOf: (message: SentMessage) => memoize(parts, message.id, () => messageScope(message)),
    fingerprintOf: ({ id, content, emailHtml, options }: SentMessage) =>
      memoize(fingerprints, id, () => fingerprintOf(content, emailHtml, options.template?.dynamicContent ?? null)),
    fixedTexts: (delivery: ReadyDelivery): RenderedTexts =>
      memoize(texts, keyOf(delivery), () =>
        Object.fromEntries(Object.entries(sourcesOf(delivery)).map(([field, { text }]) => [field, text])),
      ),
    shareFor(delivery: ReadyDelivery): ShareContent {
      const isFixed = !liquid.get(delivery.message)
      return <Content extends OutgoingMessage['content']>(variant: string, make: () => Content): Content =>
        isFixed ? (memoize(contents, `${keyOf(delivery)} ${variant}`, make) as Content) : make()
    },
  }
}

function memoize<Key, Value>(values: Map<Key, Value>, key: Key, make: () => Value): Value {
  if (!values.has(key)) values.set(key, make())
  return values.get(key) as Value
}

async function render(
  engine: Engine,
  { appId, lane }: Pick<ComposeInput, 'appId' | 'lane'>,
  deliveries: readonly ReadyDelivery[],
  cache: CompositionCache,
): Promise<RenderedDelivery[]> {
  if (deliveries.length === 0) return []
  const { db, renderer, clock } = engine
  const fingerprints = [...new Set(deliveries.map(({ message }) => cache.fingerprintOf(message)))]
  const [owners, sender, runs, suspensions] = await Promise.all([
    loadOwners(db, appId, deliveries),
    findAppScope(db, appId),
    loadRuns(engine, appId, deliveries),
    findSuspensions(db, appId, fingerprints, clock.now()),
  ])
  // The app was deleted.
  if (!sender) return deliveries.map((delivery) => ({ ...delivery, texts: undefined }))
  const suspended = new Set(suspensions.map(({ fingerprint }) => fingerprint))
  const renderable = deliveries.filter(
    (delivery) =>
      delivery.due.ownerId !== null &&
      owners.has(delivery.due.ownerId) &&
      !suspended.has(cache.fingerprintOf(delivery.message)) &&
      attempt(() => cache.partsOf(delivery.message) && cache.sourcesOf(delivery)) !== undefined,
  )
  const items = renderable.map((delivery): RenderItem => {
    const user = owners.get(delivery.due.ownerId as UserId) as User
    return {
      template: cache.sourcesOf(delivery),
      context: liquidScopeOf(delivery, cache.partsOf(delivery.message), user, sender, runs.get(delivery.due.runId)),
      fingerprint: cache.fingerprintOf(delivery.message),
    }
  })
  const results = await renderer.render(appId, items, clock.now(), lane)
  const resultOf = new Map(renderable.map(({ due }, i) => [due, results[i]]))
  const exceedsLimits = ({ due }: ReadyDelivery) => failureReason(resultOf.get(due)) === 'template_suspended'
  const messagesToSuspend = new Map(
    renderable.filter(exceedsLimits).map(({ message }) => [cache.fingerprintOf(message), message]),
  )
  for (const [fingerprint, message] of messagesToSuspend) await suspendContent(engine, appId, fingerprint, message)
  return deliveries.map((delivery) => {
    const result = resultOf.get(delivery.due)
    if (result?.ok) return { ...delivery, texts: result.texts }
    const isSuspended = suspended.has(cache.fingerprintOf(delivery.message))
    return { ...delivery, texts: undefined, reason: isSuspended ? 'template_suspended' : failureReason(result) }
  })
}

const failureReason = (result: Rendered | RenderFailure | undefined) =>
  result && !result.ok ? result.reason : undefined

async function loadOwners(db: Db, appId: AppId, deliveries: readonly ReadyDelivery[]): Promise<Map<UserId, User>> {
  const ids = [...new Set(deliveries.flatMap(({ due }) => (due.ownerId === null ? [] : [due.ownerId])))]
  const refs = ids.map((id) => ({ id }))
  const users = await loadReferencedUsers(db, appId, refs, { subscriptions: true, purchases: false })
  return new Map(users.flatMap((user) => (user ? [[user.id, user]] : [])))
}

type RunData = Record<string, unknown>

async function loadRuns(
  { readRunData }: Pick<Engine, 'readRunData'>,
  appId: AppId,
  deliveries: readonly ReadyDelivery[],
) {
  const ids = new Set(deliveries.map(({ due }) => due.runId))
  ids.delete(NO_RUN)
  return ids.size > 0 && readRunData ? readRunData(appId, [...ids]) : new Map<string, RunData>()
}

const liquidScopeOf = (
  { due, details }: ReadyDelivery,
  parts: MessageScope,
  user: User,
  sender: AppScope,
  journey: RunData | undefined,
) =>
  buildLiquidScope({
    ...sender,
    user,
    subscription: user.subscriptions.get(due.subscriptionId),
    ...parts,
    journey: journey ?? null,
    unsubscribeToken: details.unsubscribeToken?.() ?? null,
  })
