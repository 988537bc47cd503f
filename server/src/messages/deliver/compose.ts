// What is really said to each recipient. Messages without Liquid are put together once for all who get the same.

import type { EmailAttachment } from '../../channels/email/message.ts'
import type { AppId, UserId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { allSources, isEmailByLanguage, sourcesFor } from '../../templates/content-sources.ts'
import { type AppScope, findAppScope } from '../../templates/find-app-scope.ts'
import { fingerprintOf } from '../../templates/fingerprint.ts'
import { buildLiquidScope } from '../../templates/liquid-scope.ts'
import type { Rendered, RenderFailure, RenderItem } from '../../templates/render/renderer.ts'
import { hasLiquid, type TemplateSources } from '../../templates/render/source.ts'
import { findSuspensions } from '../../templates/suspension-store.ts'
import { loadReferencedUsers } from '../../users/load-store.ts'
import type { User } from '../../users/user.ts'
import { emailContent, envelopeOf } from '../email/content.ts'
import type { EmailMetadata } from '../email/prepare.ts'
import type { Engine } from '../engine/engine.ts'
import type { ActivityContent, OutgoingMessage } from '../engine/sender.ts'
import { providerExpiryOf } from '../lifetime.ts'
import { type JobLane, type LiveActivity, NO_RUN } from '../message.ts'
import { iosSound, pushContent, type RenderedTexts } from '../push/content.ts'
import { type MessageScope, messageScope } from '../scope.ts'
import type { DueDelivery, SentMessage } from './store.ts'
import { suspendContent } from './suspend-content.ts'

/** `mailing`: of those that go by mail; `files`: what hangs on to it. */
export type ReadyDelivery = {
  due: DueDelivery
  message: SentMessage
  mailing?: EmailMetadata | undefined
  files?: readonly EmailAttachment[] | undefined
}
export type ComposedDelivery = ReadyDelivery & { outgoing: OutgoingMessage }
export type ComposeFailure = ReadyDelivery & { reason: RenderFailure['reason'] }
export type Composition = { composed: ComposedDelivery[]; failed: ComposeFailure[] }

/** With the text of each field in the recipient's language; rendered or not. */
type RenderedDelivery = ReadyDelivery & {
  texts: RenderedTexts | undefined
  reason?: ComposeFailure['reason'] | undefined
}

export async function compose(
  engine: Engine,
  appId: AppId,
  lane: JobLane,
  list: readonly ReadyDelivery[],
): Promise<Composition> {
  const writer = createWriter(engine, appId)
  const isRendered = ({ message }: ReadyDelivery) => tried(() => writer.hasLiquid(message)) ?? false
  const fixed = list
    .filter((it) => !isRendered(it))
    .map((it): RenderedDelivery => ({ ...it, texts: tried(() => writer.fixedTexts(it)) }))
  const rendered = await render(engine, appId, lane, list.filter(isRendered), writer)
  const composed: ComposedDelivery[] = []
  const failed: ComposeFailure[] = []
  for (const { texts, reason = 'render_failed', ...it } of inOrder(list, [...fixed, ...rendered])) {
    const parcel = texts && tried(() => writer.parcel(it, texts))
    if (parcel) composed.push({ ...it, outgoing: parcel })
    else failed.push({ ...it, reason })
  }
  return { composed, failed }
}

/** As they were given: in the order in which they are due. */
function inOrder(list: readonly ReadyDelivery[], worded: readonly RenderedDelivery[]): RenderedDelivery[] {
  const found = new Map(worded.map((it) => [it.due, it]))
  return list.map(({ due }) => found.get(due) as RenderedDelivery)
}

/** A message that cannot be put together must not keep the others of its line from being sent. */
function tried<Value>(make: () => Value): Value | undefined {
  try {
    return make()
  } catch {
    return undefined
  }
}

type Writer = ReturnType<typeof createWriter>

/** Remembers what it has put together, for as long as one batch. */
function createWriter({ email, clock }: Pick<Engine, 'email' | 'clock'>, appId: AppId) {
  const liquid = new Map<SentMessage, boolean>()
  const sources = new Map<string, TemplateSources>()
  const fingerprints = new Map<string, string>()
  const texts = new Map<string, RenderedTexts>()
  const parts = new Map<string, MessageScope>()
  const contents = new Map<string, OutgoingMessage['content']>()

  const remembered = <Value>(known: Map<string, Value>, key: string, make: () => Value): Value => {
    if (!known.has(key)) known.set(key, make())
    return known.get(key) as Value
  }
  /** Most mails say the same in every language, and are put together once. */
  const nameOf = ({ due, message: { id, channel, content } }: ReadyDelivery) =>
    channel === 'email' && !isEmailByLanguage(content) ? id : `${id} ${due.language ?? ''}`
  const sourcesOf = (it: ReadyDelivery) =>
    remembered(sources, nameOf(it), () => sourcesFor(it.message.content, it.message.emailHtml, it.due.language))

  return {
    hasLiquid(message: SentMessage): boolean {
      const known = liquid.get(message)
      if (known !== undefined) return known
      const found = Object.values(allSources(message.content, message.emailHtml)).some(({ text }) => hasLiquid(text))
      liquid.set(message, found)
      return found
    },
    /** Those of one message in one language share the object: it travels to the renderer once. */
    sourcesOf,
    /** They share the object for the same reason. */
    partsOf: (message: SentMessage) => remembered(parts, message.id, () => messageScope(message)),
    fingerprintOf: ({ id, content, emailHtml, options }: SentMessage) =>
      remembered(fingerprints, id, () => fingerprintOf(content, emailHtml, options.template?.dynamicContent ?? null)),
    fixedTexts: (it: ReadyDelivery): RenderedTexts =>
      remembered(texts, nameOf(it), () =>
        Object.fromEntries(Object.entries(sourcesOf(it)).map(([field, { text }]) => [field, text])),
      ),
    parcel(it: ReadyDelivery, texts: RenderedTexts): OutgoingMessage {
      const { due, message } = it
      const address = { platform: due.platform, token: due.token ?? '' }
      const isFixed = !liquid.get(message)
      const sharedAs =
        (name: string) =>
        <Content extends OutgoingMessage['content']>(make: () => Content): Content =>
          isFixed ? (remembered(contents, name, make) as Content) : make()
      if (it.mailing) {
        const { mailing, files } = it
        const content = sharedAs(nameOf(it))(() => emailContent({ ...email, appId }, mailing, message, texts, files))
        return { ...address, kind: 'email', content, ...envelopeOf(due, message, mailing, clock.now()) }
      }
      const share = sharedAs(`${nameOf(it)} ${due.platform} ${due.expiresAt.getTime()}`)
      if (message.channel === 'sms')
        return { ...address, kind: 'sms', content: share(() => smsContent(message, texts)) }
      const { activity } = message.options
      if (activity) return { ...address, kind: 'activity', content: share(() => activityContent(it, activity, texts)) }
      const content = share(() => pushContent(message, texts, due.platform, lastMoment(it)))
      return { ...address, kind: 'push', content, webAuth: due.webAuth, webP256: due.webP256 }
    },
  }
}

const lastMoment = ({ due, message }: ReadyDelivery): Date => providerExpiryOf(due.expiresAt, message.options)

function activityContent(it: ReadyDelivery, activity: LiveActivity, texts: RenderedTexts): ActivityContent {
  const { id: messageId, options, content } = it.message
  const { headings: title, contents: body } = texts
  const isSilent = title === undefined && body === undefined
  const alert = isSilent ? undefined : { title, body, sound: iosSound(content) }
  return { messageId, activity, expiresAt: lastMoment(it), priority: options.priority, alert }
}

const smsContent = ({ id, content }: SentMessage, texts: RenderedTexts) => ({
  messageId: id,
  text: texts.contents ?? '',
  from: content.sms_from ?? undefined,
  mediaUrls: (content.sms_media_urls ?? []).map((_, i) => texts[`sms_media_urls[${i}]`] ?? ''),
})

async function render(
  engine: Engine,
  appId: AppId,
  lane: JobLane,
  list: readonly ReadyDelivery[],
  writer: Writer,
): Promise<RenderedDelivery[]> {
  if (list.length === 0) return []
  const { db, renderer, clock } = engine
  const fingerprints = [...new Set(list.map(({ message }) => writer.fingerprintOf(message)))]
  const [owners, sender, runs, suspensions] = await Promise.all([
    loadOwners(db, appId, list),
    findAppScope(db, appId),
    loadRuns(engine, appId, list),
    findSuspensions(db, appId, fingerprints, clock.now()),
  ])
  // The app is gone, and with it whoever it would have said something to.
  if (!sender) return list.map((it) => ({ ...it, texts: undefined }))
  const suspended = new Set(suspensions.map(({ fingerprint }) => fingerprint))
  const known = list.filter(
    (it) =>
      it.due.ownerId !== null &&
      owners.has(it.due.ownerId) &&
      !suspended.has(writer.fingerprintOf(it.message)) &&
      tried(() => writer.partsOf(it.message) && writer.sourcesOf(it)) !== undefined,
  )
  const items = known.map(
    (it): RenderItem => ({
      template: writer.sourcesOf(it),
      context: contextOf(
        it,
        writer.partsOf(it.message),
        owners.get(it.due.ownerId as UserId) as User,
        sender,
        runs.get(it.due.runId),
      ),
      fingerprint: writer.fingerprintOf(it.message),
    }),
  )
  const results = await renderer.render(appId, items, clock.now(), lane)
  const resultOf = new Map(known.map(({ due }, i) => [due, results[i]]))
  const isGivenUp = ({ due }: ReadyDelivery) => failureReason(resultOf.get(due)) === 'template_suspended'
  const givenUp = new Map(known.filter(isGivenUp).map(({ message }) => [writer.fingerprintOf(message), message]))
  for (const [fingerprint, message] of givenUp) await suspendContent(engine, appId, fingerprint, message)
  return list.map((it) => {
    const result = resultOf.get(it.due)
    if (result?.ok) return { ...it, texts: result.texts }
    const isSuspended = suspended.has(writer.fingerprintOf(it.message))
    return { ...it, texts: undefined, reason: isSuspended ? 'template_suspended' : failureReason(result) }
  })
}

const failureReason = (result: Rendered | RenderFailure | undefined) =>
  result && !result.ok ? result.reason : undefined

async function loadOwners(db: Db, appId: AppId, list: readonly ReadyDelivery[]): Promise<Map<UserId, User>> {
  const ids = [...new Set(list.flatMap(({ due }) => (due.ownerId === null ? [] : [due.ownerId])))]
  const refs = ids.map((id) => ({ id }))
  const users = await loadReferencedUsers(db, appId, refs, { subscriptions: true, purchases: false })
  return new Map(users.flatMap((user) => (user ? [[user.id, user]] : [])))
}

type RunData = Record<string, unknown>

async function loadRuns({ readRunData }: Pick<Engine, 'readRunData'>, appId: AppId, list: readonly ReadyDelivery[]) {
  const ids = new Set(list.map(({ due }) => due.runId))
  ids.delete(NO_RUN)
  return ids.size > 0 && readRunData ? readRunData(appId, [...ids]) : new Map<string, RunData>()
}

const contextOf = (
  { due, mailing }: ReadyDelivery,
  parts: MessageScope,
  user: User,
  from: AppScope,
  journey: RunData | undefined,
) =>
  buildLiquidScope({
    ...from,
    user,
    subscription: user.subscriptions.get(due.subscriptionId),
    ...parts,
    journey: journey ?? null,
    unsubscribeToken: mailing?.referenceFor('unsubscribe') ?? null,
  })
