// Receives the events that email providers report. Nothing is processed before the request is authenticated; each event
// counts once, however often it is reported; and the provider is asked to resend what could not be recorded.

import { createHash } from 'node:crypto'
import { findAllApps } from '../../../apps/store.ts'
import type { EmailReference } from '../../../email/reference.ts'
import { unavailable } from '../../../lib/errors.ts'
import { type AppId, isUuid } from '../../../lib/ids.ts'
import type { EmailFeedback } from '../../../messages/email/record-feedback.ts'
import type { Db } from '../../../storage/db.ts'
import type { FeedbackContext } from '../../context.ts'
import { findCopies, handleEmailEvent } from '../handle-email-event.ts'
import { bounceReasonOf } from '../handle-inbound-email.ts'
import { readMailgun } from './mailgun.ts'
import { readPostmark } from './postmark.ts'
import { readSendgrid } from './sendgrid.ts'
import { readSes } from './ses.ts'
import {
  type EmailEventSource,
  notAuthentic,
  type SourceEvent,
  type SourceReport,
  type SourceRequest,
  sourceSecret,
} from './source.ts'
import { areClaimed, claimReceipts, deleteOldReceipts, findSource, finishReceipts, releaseReceipts } from './store.ts'

/** A claim that is older than this belonged to a process that died before finishing. */
const STALE_MS = 60_000
const AT_ONCE = 50
/** Longer than any provider keeps retrying, and longer than a signature is accepted. */
const RETENTION_MS = 8 * 86_400_000
const DELETED_AT_ONCE = 10_000
/** An event counts when it happened; if that is in the future or longer ago than this, it counts now. */
const OLDEST_EVENT_MS = 31 * 86_400_000

export async function receiveEvents(
  ctx: FeedbackContext,
  appId: AppId,
  source: EmailEventSource,
  request: SourceRequest,
) {
  const said = isUuid(appId) ? await read(ctx, appId, source, request) : undefined
  if (!said) throw notAuthentic()
  await handleOnce(ctx, appId, source, said)
}

async function read(
  ctx: FeedbackContext,
  appId: AppId,
  source: EmailEventSource,
  request: SourceRequest,
): Promise<SourceReport | undefined> {
  const found = await findSource(ctx.db, appId, source)
  if (!found) return undefined
  const secrets = found.secret === null ? undefined : sourceSecret(ctx.secrets, appId, source).open(found.secret)
  const configured = { settings: found.settings, secrets } as never
  const { classifyBounce: classify, fetchPage, findCertificate } = ctx.emailFeedback
  const now = ctx.clock.now()
  if (source === 'ses') return readSes(configured, request, { now, classify, findCertificate, fetchPage })
  if (source === 'mailgun') return readMailgun(configured, request, now, classify)
  if (source === 'sendgrid') return readSendgrid(configured, request, now, classify)
  return readPostmark(configured, request, classify)
}

const nameOf = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 40)

/** Skips a request that was already processed; otherwise handles each of its events that was not. */
async function handleOnce(
  ctx: FeedbackContext,
  appId: AppId,
  source: EmailEventSource,
  { once, events }: SourceReport,
): Promise<void> {
  const request = once === undefined ? [] : [nameOf(once)]
  if (request.length > 0 && (await claim(ctx, appId, source, request)).size === 0) return
  const named = new Map(events.map((event) => [nameOf(`event ${event.id}`), event]))
  const mine: string[] = []
  const done: string[] = []
  try {
    if (named.size > 0) mine.push(...(await claim(ctx, appId, source, [...named.keys()])))
    for (let at = 0; at < mine.length; at += AT_ONCE) {
      const batch = mine.slice(at, at + AT_ONCE)
      const taken = await Promise.allSettled(
        batch.map((name) => handleEvent(ctx, appId, named.get(name) as SourceEvent)),
      )
      done.push(...batch.filter((_, n) => taken[n]?.status === 'fulfilled'))
      const failed = taken.find((it) => it.status === 'rejected')
      if (failed) throw failed.reason
    }
  } catch (error) {
    await finishReceipts(ctx.db, appId, source, done)
    await releaseReceipts(ctx.db, appId, source, [...request, ...mine])
    throw error
  }
  await finishReceipts(ctx.db, appId, source, [...request, ...done])
}

/**
 * Returns the events that this server is to handle. If another server is handling one of them, the provider is asked to
 * retry later.
 */
async function claim(
  ctx: FeedbackContext,
  appId: AppId,
  source: EmailEventSource,
  names: string[],
): Promise<Set<string>> {
  const now = ctx.clock.now()
  const staleBefore = new Date(now.getTime() - STALE_MS)
  const mine = await claimReceipts(ctx.db, appId, source, names, { now, staleBefore })
  const others = names.filter((name) => !mine.has(name))
  if (others.length > 0 && (await areClaimed(ctx.db, appId, source, others))) {
    await releaseReceipts(ctx.db, appId, source, [...mine])
    throw unavailable()
  }
  return mine
}

async function handleEvent(ctx: FeedbackContext, appId: AppId, event: SourceEvent): Promise<void> {
  const reference = referenceOf(ctx, appId, event)
  if (!reference) return
  const news = await newsOf(ctx, reference, event)
  if (!news) return
  const about = { reference, at: clampTime(event.at, ctx.clock.now()) }
  if (news.kind !== 'bounced') return handleEmailEvent(ctx, { ...about, ...news } as EmailFeedback)
  const kind = news.class === 'transient' ? 'soft' : news.class
  await handleEmailEvent(
    ctx,
    { ...about, kind: 'bounced', class: kind, reason: bounceReasonOf(kind) },
    { detail: news.detail },
  )
}

const GRAVE: readonly EmailFeedback['kind'][] = ['bounced', 'complained', 'unsubscribed']

/** Returns what is reported about the mail itself; undefined when a grave event concerns only its copies. */
async function newsOf(ctx: FeedbackContext, reference: EmailReference, { recipients: told }: SourceEvent) {
  const [first] = told
  if (!first || !GRAVE.includes(first.event.kind)) return first?.event
  const isCopy = await findCopies(ctx, reference)
  return told.find(({ recipient }) => recipient === undefined || !isCopy([recipient]))?.event
}

/**
 * The reference is either signed by us, or the Message-ID that we assigned, which can be trusted because the sender is
 * authenticated by now. A reference to another app's delivery is ignored.
 */
function referenceOf(ctx: FeedbackContext, appId: AppId, event: SourceEvent): EmailReference | undefined {
  const signed = event.reference && ctx.emailFeedback.references.read(event.reference.trim(), 'report')
  if (signed) return signed.appId === appId ? signed : undefined
  const [, id, year, month] = /^<?([a-z2-7]{13})\.(\d\d)(\d\d)@/.exec(event.messageId?.trim() ?? '') ?? []
  if (id === undefined || Number(month) < 1 || Number(month) > 12) return undefined
  return { appId, id, month: new Date(Date.UTC(2_000 + Number(year), Number(month) - 1)) }
}

function clampTime(at: Date | undefined, now: Date): Date {
  const age = at ? now.getTime() - at.getTime() : 0
  return at && age >= 0 && age <= OLDEST_EVENT_MS ? at : now
}

/** Called on a schedule. */
export async function deleteExpiredReceipts(db: Db, now: Date): Promise<void> {
  const before = new Date(now.getTime() - RETENTION_MS)
  for (const { id } of await findAllApps(db))
    while ((await deleteOldReceipts(db, id, before, DELETED_AT_ONCE)) === DELETED_AT_ONCE);
}
