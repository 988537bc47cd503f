// The engine's sender, made of the channels: each app's parcels go out with the app's own credentials.

import type { PushCredentials } from '../apps/credentials/credentials.ts'
import type { Channel, ChannelOutcome, TrafficSource } from '../channels/channel.ts'
import type { EmailItem } from '../channels/email/message.ts'
import type { ProviderSettings } from '../channels/providers.ts'
import { openAdmChannel, writeAdmPush } from '../channels/push/adm/channel.ts'
import { openApnsChannel } from '../channels/push/apns/channel.ts'
import { writeLiveActivityPush } from '../channels/push/apns/live-activity.ts'
import { writeApnsPush, writeSafariPush } from '../channels/push/apns/payload.ts'
import type { PushContent } from '../channels/push/content.ts'
import { openFcmChannel } from '../channels/push/fcm/channel.ts'
import { writeFcmPush } from '../channels/push/fcm/payload.ts'
import { openHuaweiChannel } from '../channels/push/huawei/channel.ts'
import { writeHuaweiPush } from '../channels/push/huawei/payload.ts'
import { openWebPushChannel } from '../channels/push/web-push/channel.ts'
import { writeWebPush } from '../channels/push/web-push/payload.ts'
import { openWnsChannel } from '../channels/push/wns/channel.ts'
import { writeWnsPush } from '../channels/push/wns/payload.ts'
import type { SmsItem } from '../channels/sms/message.ts'
import type { Clock } from '../lib/clock.ts'
import type { AppId } from '../lib/ids.ts'
import type { Provider } from '../messages/delivery.ts'
import type { ActivityContent, DeliverySender, OutgoingMessage } from '../messages/engine/sender.ts'
import type { LiveActivity } from '../messages/message.ts'

/** How an app sends texts: a channel with its account. */
export type SmsRoute = { channel: Channel<SmsItem>; statusCallback?: string | undefined }

export type EmailRoute = { channel: Channel<EmailItem> }

export type SenderParts = {
  clock: Clock
  providers: Pick<ProviderSettings, 'route' | 'vapidSubject'>
  readPushCredentials(appId: AppId): Promise<PushCredentials | undefined>
  /** Undefined for an app that sends no texts. Asked for each slice, and closed by who opened it. */
  findTexts(appId: AppId): Promise<SmsRoute | undefined>
  /** There for every app: without a way out, mail is caught. */
  findMail(appId: AppId): Promise<EmailRoute>
}

export type Senders = DeliverySender & {
  /** The app has other credentials now; without one, any app may. */
  forget(appId?: AppId): void
  /** Waits for what is under way. */
  close(): Promise<void>
}

/** Changes are announced; should one be missed, this is how long it can go unnoticed. */
const MAX_AGE_MS = 60_000
const MAX_APPS = 1_000

type PushParcel = Extract<OutgoingMessage, { kind: 'push' }>

export function createSenders({ clock, providers, readPushCredentials, findTexts, findMail }: SenderParts): Senders {
  const { route, vapidSubject } = providers
  const apns = openApnsChannel({ clock, route })
  const fcm = openFcmChannel({ clock, route })
  const huawei = openHuaweiChannel({ clock, route })
  const adm = openAdmChannel({ clock, route })
  const wns = openWnsChannel({ clock, route })
  const browsers = openWebPushChannel({ clock, route })
  const known = new Map<AppId, { sinceMs: number; found: Promise<PushCredentials | undefined> }>()

  function credentialsOf(appId: AppId): Promise<PushCredentials | undefined> {
    const held = known.get(appId)
    if (held && clock.leaseMs() - held.sinceMs < MAX_AGE_MS) return held.found
    if (known.size >= MAX_APPS) known.clear()
    const found = readPushCredentials(appId)
    known.set(appId, { sinceMs: clock.leaseMs(), found })
    found.catch(() => known.delete(appId))
    return found
  }

  /** Credentials were taken away after the message was expanded. */
  const without = (parcels: readonly OutgoingMessage[]): ChannelOutcome[] =>
    parcels.map(() => ({ kind: 'misconfigured', reason: 'no credentials' }))

  /** The database is away, say. Nobody was asked for anything yet. */
  const unread = (parcels: readonly OutgoingMessage[]): ChannelOutcome[] =>
    parcels.map(() => ({ kind: 'retry', reason: 'credentials could not be read' }))

  type Means = { push?: PushCredentials | undefined; texts?: SmsRoute | undefined; mail?: EmailRoute }

  async function meansOf(appId: AppId, provider: Provider): Promise<Means> {
    if (provider === 'sms') return { texts: await findTexts(appId) }
    if (provider === 'email') return { mail: await findMail(appId) }
    return { push: await credentialsOf(appId) }
  }

  return {
    async ready(appId) {
      const [push, texts] = await Promise.all([credentialsOf(appId), findTexts(appId)])
      const ready = new Set<Provider>(['email'])
      if (push) ready.add('web-push')
      if (push?.apns) ready.add('apns')
      if (push?.safari) ready.add('safari')
      if (push?.fcm) ready.add('fcm')
      if (push?.huawei) ready.add('huawei')
      if (push?.adm) ready.add('adm')
      if (push?.wns) ready.add('wns')
      if (texts) ready.add('sms')
      return ready
    },
    async send(appId, { provider, lane }, composed) {
      const means = await meansOf(appId, provider).catch(() => undefined)
      if (!means) return unread(composed)
      const { push, texts, mail } = means
      const parcels = push?.isDataAtRoot ? composed.map(withRootData) : composed
      const pushes = parcels.filter((it): it is PushParcel => it.kind === 'push')
      switch (provider) {
        case 'apns': {
          const credentials = push?.apns
          if (!credentials) return without(parcels)
          const pushOf = (it: OutgoingMessage) =>
            it.kind === 'activity'
              ? said(activityPush, it.content)
              : it.kind === 'push' && said(writeApnsPush, it.content)
          return apns.send(
            parcels.flatMap((it) => {
              const push = pushOf(it)
              return push ? [{ appId, token: it.token, credentials, push }] : []
            }),
          )
        }
        case 'safari': {
          const pair = push?.safari
          if (!pair) return without(parcels)
          const credentials = {
            ...pair,
            kind: 'certificate',
            environment: 'production',
            topic: pair.subjectId,
          } as const
          return apns.send(
            pushes.map(({ token, content }) => ({ appId, token, credentials, push: said(writeSafariPush, content) })),
          )
        }
        case 'fcm': {
          const credentials = push?.fcm
          if (!credentials) return without(parcels)
          return fcm.send(
            pushes.map(({ token, content }) => ({ appId, token, credentials, push: said(writeFcmPush, content) })),
          )
        }
        case 'huawei': {
          const credentials = push?.huawei
          if (!credentials) return without(parcels)
          return huawei.send(
            pushes.map(({ token, content }) => ({ appId, token, credentials, push: said(writeHuaweiPush, content) })),
          )
        }
        case 'adm': {
          const credentials = push?.adm
          if (!credentials) return without(parcels)
          return adm.send(
            pushes.map(({ token, content }) => ({ appId, token, credentials, push: said(writeAdmPush, content) })),
          )
        }
        case 'wns': {
          const credentials = push?.wns
          if (!credentials) return without(parcels)
          return wns.send(
            pushes.map(({ token: channelUri, content }) => ({
              appId,
              channelUri,
              credentials,
              push: said(writeWnsPush, content),
            })),
          )
        }
        case 'web-push': {
          if (!push) return without(parcels)
          const vapid = { ...push.vapid, subject: vapidSubject }
          return browsers.send(
            pushes.map(({ token: endpoint, content, webAuth, webP256 }) => ({
              appId,
              endpoint,
              p256dh: webP256 ?? '',
              auth: webAuth ?? '',
              vapid,
              push: said(writeWebPush, content),
            })),
          )
        }
        case 'sms': {
          if (!texts) return without(parcels)
          const items = parcels.flatMap((it): SmsItem[] =>
            it.kind === 'sms' ? [{ ...it.content, to: it.token, statusCallback: texts.statusCallback }] : [],
          )
          return texts.channel.send(items)
        }
        case 'email': {
          if (!mail) return without(parcels)
          return mail.channel.send(
            parcels.flatMap((it) => (it.kind === 'email' ? [mailItem(it, { appId, lane })] : [])),
          )
        }
      }
    },
    forget(appId) {
      if (appId === undefined) known.clear()
      else known.delete(appId)
    },
    async close() {
      await Promise.all([apns, fcm, huawei, adm, wns, browsers].map((channel) => channel.close()))
    },
  }
}

const withRootData = (it: OutgoingMessage): OutgoingMessage =>
  it.kind === 'push' ? { ...it, content: said(dataAtRoot, it.content) } : it
const dataAtRoot = (content: PushContent): PushContent => ({ ...content, isDataAtRoot: true })

const mailItem = (it: Extract<OutgoingMessage, { kind: 'email' }>, source: TrafficSource): EmailItem => ({
  ...it,
  to: it.token,
  source,
})

/** `at` orders updates: a device drops one that is older than what it shows. */
const activityPush = ({ activity, ...content }: ActivityContent) =>
  writeLiveActivityPush(
    {
      ...content,
      state: activity.state,
      start: activity.type === undefined ? undefined : startOf(activity, activity.type),
      isEnd: activity.event === 'end',
      staleAt: momentOf(activity.staleAt),
      dismissAt: momentOf(activity.dismissAt),
      relevanceScore: activity.relevanceScore,
    },
    new Date(activity.at),
  )

const startOf = ({ id, attributes = {} }: LiveActivity, type: string) => ({ type, attributes, activityId: id })
const momentOf = (seconds: number | undefined) => (seconds === undefined ? undefined : new Date(seconds * 1_000))

type Write<Content, Push> = (content: Content) => Push

/** In a provider's words, made once for all that share the content. */
const written = new Map<unknown, WeakMap<object, unknown>>()

function said<Content extends object, Push>(write: Write<Content, Push>, content: Content): Push {
  const known = written.get(write) ?? new WeakMap<object, unknown>()
  written.set(write, known)
  if (!known.has(content)) known.set(content, write(content))
  return known.get(content) as Push
}
