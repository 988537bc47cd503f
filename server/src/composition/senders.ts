// Sends the engine's deliveries over the channels, each app's with the app's own credentials.

import type { OpenedPushSettings } from '../apps/credentials/credentials.ts'
import type { Channel, ChannelOutcome, TrafficSource } from '../channels/channel.ts'
import type { EmailItem } from '../channels/email/message.ts'
import type { ProviderSettings } from '../channels/providers.ts'
import { type PushProviderName, pushProviderNames } from '../channels/push/catalog.ts'
import type { PushContent } from '../channels/push/content.ts'
import type { PushMessage } from '../channels/push/provider.ts'
import { type AnyPushSender, pushProviders } from '../channels/push/providers.ts'
import type { SmsItem } from '../channels/sms/message.ts'
import type { Clock } from '../lib/clock.ts'
import type { AppId } from '../lib/ids.ts'
import type { Provider } from '../messages/delivery.ts'
import type { DeliverySender } from '../messages/engine/types.ts'
import type { LiveActivity } from '../messages/message.ts'
import type { ActivityContent, OutgoingMessage } from '../messages/outgoing-message.ts'

/** How an app sends SMS: a channel with its account. */
export type SmsRoute = { channel: Channel<SmsItem>; statusCallback?: string | undefined }

export type EmailRoute = { channel: Channel<EmailItem> }

export type SenderParts = {
  clock: Clock
  providers: Pick<ProviderSettings, 'route' | 'vapidSubject'>
  openPushSettings(appId: AppId): Promise<OpenedPushSettings | undefined>
  /**
   * Returns undefined for an app without an SMS provider. Called for each batch; whoever opened the channel closes it.
   */
  findTexts(appId: AppId): Promise<SmsRoute | undefined>
  /** Every app has an email route: without a configured one, email is caught. */
  findMail(appId: AppId): Promise<EmailRoute>
}

export type Senders = DeliverySender & {
  /** Makes the next batch of the app, or of every app, read its credentials again. */
  invalidateCredentials(appId?: AppId): void
  /** Waits for sends in progress. */
  close(): Promise<void>
}

/** Changes are announced; a missed announcement goes unnoticed for at most this long. */
const MAX_AGE_MS = 60_000
const MAX_APPS = 1_000

export function createSenders({ clock, providers, openPushSettings, findTexts, findMail }: SenderParts): Senders {
  const pushSenders = openPushSenders({ clock, ...providers })
  const pushSettings = new Map<AppId, { sinceMs: number; opened: Promise<OpenedPushSettings | undefined> }>()

  function pushSettingsOf(appId: AppId): Promise<OpenedPushSettings | undefined> {
    const cached = pushSettings.get(appId)
    if (cached && clock.leaseMs() - cached.sinceMs < MAX_AGE_MS) return cached.opened
    if (pushSettings.size >= MAX_APPS) pushSettings.clear()
    const opened = openPushSettings(appId)
    pushSettings.set(appId, { sinceMs: clock.leaseMs(), opened })
    opened.catch(() => pushSettings.delete(appId))
    return opened
  }

  /** Returns the function that sends, after everything that can fail before a provider is contacted has succeeded. */
  async function prepare(
    appId: AppId,
    { provider, lane }: { provider: Provider; lane: TrafficSource['lane'] },
    messages: readonly OutgoingMessage[],
  ): Promise<() => Promise<ChannelOutcome[]>> {
    if (provider === 'sms') {
      const route = await findTexts(appId)
      return async () => (route ? route.channel.send(smsItems(messages, route)) : refuseWithoutCredentials(messages))
    }
    if (provider === 'email') {
      const { channel } = await findMail(appId)
      return () => channel.send(emailItems(messages, { appId, lane }))
    }
    const app = await pushSettingsOf(appId)
    if (!app) return async () => refuseWithoutCredentials(messages)
    const isDataAtRoot = app.settings.additional_data_is_root_payload === true
    return () => pushSenders[provider].send(appId, app, pushMessages(messages, isDataAtRoot))
  }

  return {
    async ready(appId) {
      const [app, sms] = await Promise.all([pushSettingsOf(appId), findTexts(appId)])
      const configured = pushProviderNames.filter((name) => app && pushSenders[name].isConfigured(app))
      return new Set<Provider>(['email', ...configured, ...(sms ? ['sms' as const] : [])])
    },
    async send(appId, shard, messages) {
      const send = await prepare(appId, shard, messages).catch(() => undefined)
      // For example, the database is unreachable. No provider has been contacted yet.
      if (!send) return messages.map(() => ({ kind: 'retry', reason: 'credentials could not be read' }))
      return send()
    },
    invalidateCredentials(appId) {
      if (appId === undefined) pushSettings.clear()
      else pushSettings.delete(appId)
    },
    async close() {
      await Promise.all(Object.values(pushSenders).map((sender) => sender.close()))
    },
  }
}

function openPushSenders(settings: Parameters<(typeof pushProviders)[PushProviderName]['open']>[0]) {
  const opened = pushProviderNames.map((name): [PushProviderName, AnyPushSender] => [
    name,
    pushProviders[name].open(settings),
  ])
  return Object.fromEntries(opened) as Record<PushProviderName, AnyPushSender>
}

const refuseWithoutCredentials = (messages: readonly OutgoingMessage[]): ChannelOutcome[] =>
  messages.map(() => ({ kind: 'misconfigured', reason: 'no credentials' }))

const smsItems = (messages: readonly OutgoingMessage[], { statusCallback }: SmsRoute): SmsItem[] =>
  messages.flatMap((message) =>
    message.kind === 'sms' ? [{ ...message.content, to: message.token, statusCallback }] : [],
  )

const emailItems = (messages: readonly OutgoingMessage[], source: TrafficSource): EmailItem[] =>
  messages.flatMap((message) => (message.kind === 'email' ? [{ ...message, to: message.token, source }] : []))

const pushMessages = (messages: readonly OutgoingMessage[], isDataAtRoot: boolean): PushMessage[] =>
  messages.flatMap((message): PushMessage[] => {
    if (message.kind === 'activity') return [{ ...message, content: liveActivityOf(message.content) }]
    if (message.kind !== 'push') return []
    return [isDataAtRoot ? { ...message, content: withDataAtRoot(message.content) } : message]
  })

const withDataAtRoot = oncePerContent((content: PushContent): PushContent => ({ ...content, isDataAtRoot: true }))

/** Updates are ordered by `updatedAt`: a device drops an update older than the one it shows. */
const liveActivityOf = oncePerContent(({ activity, ...content }: ActivityContent) => ({
  ...content,
  state: activity.state,
  start: activity.type === undefined ? undefined : startOf(activity, activity.type),
  isEnd: activity.event === 'end',
  staleAt: timeOf(activity.staleAt),
  dismissAt: timeOf(activity.dismissAt),
  relevanceScore: activity.relevanceScore,
  updatedAt: new Date(activity.at),
}))

const startOf = ({ id, attributes = {} }: LiveActivity, type: string) => ({ type, attributes, activityId: id })
const timeOf = (seconds: number | undefined) => (seconds === undefined ? undefined : new Date(seconds * 1_000))

/** Messages that share a content object share the derived content as well, so that each provider formats it once. */
function oncePerContent<Content extends object, Made>(make: (content: Content) => Made): (content: Content) => Made {
  const results = new WeakMap<Content, { made: Made }>()
  return (content) => {
    const result = results.get(content) ?? { made: make(content) }
    results.set(content, result)
    return result.made
  }
}
