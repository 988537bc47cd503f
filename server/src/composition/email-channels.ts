// The channels that apps send email through. There is one per route, so that all apps on the server's relay share its
// connections. Where no route is configured, email is caught: built and signed as it would be sent, and kept for
// viewing.

import type { Channel, ChannelOutcome } from '../channels/channel.ts'
import type { Dial } from '../channels/dial.ts'
import { type MxRecord, openDirectChannel } from '../channels/email/direct.ts'
import type { EmailContent, EmailItem } from '../channels/email/message.ts'
import { encodeBase64 } from '../channels/email/mime/base64.ts'
import { buildMessage } from '../channels/email/mime/build-message.ts'
import { openRelayChannel } from '../channels/email/relay.ts'
import type { EmailContext } from '../email/context.ts'
import { findEmailRoute, isCatchRoute, type ResolvedEmailRoute } from '../email/find-route.ts'
import { type CaughtEmailDraft, createCatcher } from '../email/mailbox/catch-email.ts'
import type { Clock } from '../lib/clock.ts'
import { type AppId, isUuid } from '../lib/ids.ts'

/** How an app sends email. Only `MailChannels` closes the channel, because apps may share it. */
export type Mail = { channel: Channel<EmailItem>; isCaught: boolean }

export type MailChannels = {
  /** Returns the same channel until the app's route changes. */
  open(appId: AppId): Promise<Mail>
  /** Called when the settings of an app, or without an id those of any app, may have changed. */
  forget(appId?: AppId): void
  /** Waits for sends in progress. */
  close(): Promise<void>
}

type Parts = {
  email: EmailContext
  clock: Clock
  /** Connects to relays of apps and to recipients' servers: public addresses, and networks that the operator allows. */
  dial: Dial
  /** Connects to the server's own relay, which may be in any network. */
  dialOwn: Dial
  resolveMx(domain: string): Promise<readonly MxRecord[]>
}

/** Changes are announced; a missed announcement goes unnoticed for at most this long. */
const MAX_AGE_MS = 60_000
const MAX_APPS = 1_000
/** For direct delivery, to each of the recipients' servers. */
const CONNECTIONS_PER_HOST = 8

export function createMailChannels({ email, clock, dial, dialOwn, resolveMx }: Parts): MailChannels {
  const known = new Map<AppId, { sinceMs: number; mail: Promise<Mail> }>()
  /** Keyed by route; for relays of apps and for caught email also by app. */
  const channels = new Map<string, Channel<EmailItem>>()
  const lastKey = new Map<AppId, string>()

  async function find(appId: AppId): Promise<Mail> {
    const way = await findEmailRoute(email, appId)
    const key = keyOf(appId, way)
    const before = lastKey.get(appId)
    if (before !== undefined && before !== key && isOwn(appId, before)) drop(before)
    lastKey.set(appId, key)
    const channel = channels.get(key) ?? openWay(appId, way)
    channels.set(key, channel)
    return { channel: { send: channel.send, close: async () => {} }, isCaught: isCatchRoute(way) }
  }

  /** Sends in progress on the channel finish by themselves; nothing waits for them. */
  function drop(key: string) {
    channels
      .get(key)
      ?.close()
      .catch(() => {})
    channels.delete(key)
  }

  function openWay(appId: AppId, way: ResolvedEmailRoute): Channel<EmailItem> {
    const { helo } = email.serverEmail
    if (way.kind === 'catch') return catchingChannel(email, appId)
    if (way.kind === 'direct')
      return openDirectChannel({
        dial,
        clock,
        helo,
        resolveMx,
        connectionsPerHost: CONNECTIONS_PER_HOST,
      })
    const { host, port, tls, auth, connections, perSecond } = way
    return openRelayChannel({
      dial: way.of === 'server' ? dialOwn : dial,
      clock,
      helo,
      host,
      port,
      tls,
      connections,
      isShared: way.of === 'server',
      ...(auth && { auth }),
      ...(perSecond !== undefined && { perSecond }),
    })
  }

  return {
    open(appId) {
      const held = known.get(appId)
      if (held && clock.leaseMs() - held.sinceMs < MAX_AGE_MS) return held.mail
      if (known.size >= MAX_APPS) known.clear()
      const mail = find(appId)
      known.set(appId, { sinceMs: clock.leaseMs(), mail })
      mail.catch(() => known.delete(appId))
      return mail
    },
    forget(appId) {
      if (appId === undefined) known.clear()
      else known.delete(appId)
    },
    async close() {
      await Promise.allSettled([...known.values()].map(({ mail }) => mail))
      await Promise.all([...channels.values()].map((channel) => channel.close()))
    },
  }
}

const isOwn = (appId: AppId, key: string) => key.startsWith(appId)

const hasOwnRelay = (way: ResolvedEmailRoute) => way.kind === 'relay' && way.of === 'app'

const keyOf = (appId: AppId, way: ResolvedEmailRoute) =>
  way.kind === 'catch' || hasOwnRelay(way) ? `${appId} ${JSON.stringify(way)}` : JSON.stringify(way)

function catchingChannel(email: EmailContext, appId: AppId): Channel<EmailItem> {
  const keep = createCatcher(email, appId)
  const underWay = new Set<Promise<unknown>>()

  async function catchAll(items: readonly EmailItem[]): Promise<ChannelOutcome[]> {
    const built = await Promise.all(items.map(build))
    const drafts = built.flatMap((draft, n) => (draft ? withCopies(draft, items[n]?.bcc) : []))
    try {
      if (drafts.length > 0) await keep(drafts)
    } catch {
      return items.map(() => ({ kind: 'retry', reason: 'mailbox not reached' }))
    }
    return built.map((draft) => (draft ? { kind: 'sent' } : { kind: 'failed', reason: 'mail not valid' }))
  }

  return {
    send(items) {
      const sent = catchAll(items)
      underWay.add(sent)
      sent.finally(() => underWay.delete(sent))
      return sent
    },
    async close() {
      await Promise.all(underWay)
    },
  }
}

/** Each copy goes to its own recipient's mailbox, with identical content. */
const withCopies = (draft: CaughtEmailDraft, bcc: readonly string[] = []): CaughtEmailDraft[] =>
  [draft.toAddress, ...bcc].map((toAddress) => ({ ...draft, toAddress }))

/** Limit for the encoded files of one email, because caught email is kept in the database. */
const MOST_CAUGHT_BYTES = 200_000

/** Returns undefined for an email that no server could accept either. */
async function build(item: EmailItem): Promise<CaughtEmailDraft | undefined> {
  const { content, to } = item
  const raw = await buildMessage({ ...item, content: withSmallFiles(content) }).catch(() => undefined)
  return (
    raw && {
      fromAddress: content.from.address,
      toAddress: to,
      subject: content.subject,
      messageId: messageOf(item),
      raw,
    }
  )
}

/** Large files keep their name and type; a note replaces their content. */
function withSmallFiles(content: EmailContent): EmailContent {
  const { files = [] } = content
  if (files.reduce((sum, { encoded }) => sum + encoded.length, 0) <= MOST_CAUGHT_BYTES) return content
  return { ...content, files: files.map((file) => ({ ...file, encoded: LEFT_OUT })) }
}

const LEFT_OUT = encodeBase64(Buffer.from('Too large to be kept with caught mail.'))

/** The Feedback-ID header begins with the id of the message. */
function messageOf({ content }: EmailItem): string | null {
  const pieces = content.headers.find(([name]) => name.toLowerCase() === 'feedback-id')?.[1] ?? []
  const [id = ''] = pieces[0]?.split(':') ?? []
  return isUuid(id) ? id : null
}
