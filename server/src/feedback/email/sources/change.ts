// Configures which providers may report email events to an app, and how their requests are authenticated. Secrets are
// masked when the configuration is shown.

import { actorOf, type RequestOrigin } from '../../../apps/audit/actor.ts'
import { MASK } from '../../../apps/schema.ts'
import { insertAuditEntries, lockApp } from '../../../apps/store.ts'
import { AppError, appNotFound, invalid, type Problem } from '../../../lib/errors.ts'
import type { AppId } from '../../../lib/ids.ts'
import type { FeedbackContext } from '../../context.ts'
import type { EventSourcesAnswer, EventSourcesBody } from './schema.ts'
import { readPublicKey } from './sendgrid.ts'
import {
  type EmailEventSource,
  emailEventSources,
  type SourceSecrets,
  type SourceSettings,
  sourceSecret,
} from './source.ts'
import { deleteSource, findSource, findSources, type StoredSource, upsertSource } from './store.ts'

export async function viewSources(ctx: FeedbackContext, appId: AppId): Promise<EventSourcesAnswer> {
  const found = new Map((await findSources(ctx.db, appId)).map((it) => [it.source, it]))
  const base = ctx.publicUrl?.replace(/\/+$/, '')
  return Object.fromEntries(
    emailEventSources.map((source) => {
      const stored = found.get(source)
      const url = base === undefined ? null : `${base}/apps/${appId}/email/events/${source}`
      return [source, stored ? { ...stored.settings, ...masked(ctx, appId, stored), url } : null]
    }),
  ) as EventSourcesAnswer
}

function masked(ctx: FeedbackContext, appId: AppId, { source, secret }: StoredSource): Record<string, string | null> {
  const opened = secret === null ? {} : sourceSecret(ctx.secrets, appId, source).open(secret)
  return Object.fromEntries(Object.entries(opened).map(([name, value]) => [name, value === null ? null : MASK]))
}

/** A field that is left out stays unchanged; null removes the source. */
export async function changeSources(ctx: FeedbackContext, appId: AppId, body: EventSourcesBody, by: RequestOrigin) {
  const now = ctx.clock.now()
  await ctx.db.transaction(async (db) => {
    if (!(await lockApp(db, appId))) throw appNotFound()
    const changed: string[] = []
    const problems: Problem[] = []
    for (const source of emailEventSources) {
      const given = body[source]
      if (given === undefined) continue
      changed.push(source)
      if (given === null) {
        await deleteSource(db, appId, source)
        continue
      }
      const before = await findSource(db, appId, source)
      const { seal, open } = sourceSecret(ctx.secrets, appId, source)
      const known = before?.secret ? (open(before.secret) as Record<string, string | null>) : {}
      const read = readers[source](given as never, known, (title) => problems.push(...invalid(title).problems))
      const secret = read.secrets === undefined ? null : seal(read.secrets)
      await upsertSource(db, appId, { source, settings: read.settings, secret }, now)
    }
    if (problems.length > 0) throw new AppError('invalid', ...problems)
    if (changed.length === 0) return
    const entry = { action: 'email_event_sources.update', targetType: 'app' as const, detail: { fields: changed } }
    await insertAuditEntries(db, appId, [{ ...entry, id: ctx.newId(), actor: actorOf(by), targetId: appId }], now)
  })
}

type Refuse = (title: string) => void
type Readers = {
  [Name in EmailEventSource]: (
    given: NonNullable<EventSourcesBody[Name]>,
    known: Record<string, string | null>,
    refuse: Refuse,
  ) => { settings: SourceSettings[Name]; secrets: SourceSecrets[Name] }
}

const TOPIC = /^arn:aws(-cn|-us-gov)?:sns:[a-z0-9-]{1,40}:\d{12}:[\w-]{1,256}(\.fifo)?$/

/** The mask, sent back, keeps the stored value. */
const kept = (given: string | null | undefined, known: string | null | undefined) =>
  (given === MASK ? known : given) || null

const readers: Readers = {
  ses({ topic_arn }, _, refuse) {
    if (!TOPIC.test(topic_arn))
      refuse('ses.topic_arn must be the ARN of a topic, as arn:aws:sns:eu-west-1:123456789012:mail')
    return { settings: { topic_arn }, secrets: undefined }
  },
  mailgun({ signing_key }, known, refuse) {
    const key = kept(signing_key, known.signing_key)
    if (key === null || !/^[\x21-\x7e]{8,256}$/.test(key))
      refuse('mailgun.signing_key must be the key that Mailgun signs webhooks with')
    return { settings: {}, secrets: { signing_key: key ?? '' } }
  },
  sendgrid({ public_key }, _, refuse) {
    if (!readPublicKey(public_key)) refuse('sendgrid.public_key must be the verification key, as SendGrid shows it')
    return { settings: { public_key }, secrets: undefined }
  },
  postmark(given, known, refuse) {
    const username = given.username || null
    const password = kept(given.password, known.password)
    const path_secret = kept(given.path_secret, known.path_secret)
    if (username !== null && !/^[^:\p{Cc}]+$/u.test(username)) refuse('postmark.username must not hold a colon')
    if ((username === null) !== (password === null)) refuse('postmark.username and password must be given together')
    if (password !== null && password.length < 12) refuse('postmark.password must have at least 12 characters')
    if (path_secret !== null && !/^[\w-]{16,128}$/.test(path_secret))
      refuse('postmark.path_secret must have 16 to 128 letters, digits, - or _')
    if (username === null && path_secret === null) refuse('postmark needs username and password, or path_secret')
    return { settings: { username }, secrets: { password, path_secret } }
  },
}
