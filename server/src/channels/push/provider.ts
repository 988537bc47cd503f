// Defines a push provider: how it reads its credentials from an app's settings, opens its channel, and writes a
// message.

import type { Clock } from '../../lib/clock.ts'
import type { AppId } from '../../lib/ids.ts'
import type { Channel, ChannelOutcome, ProviderRoute } from '../channel.ts'
import type { LiveActivityContent } from './apns/live-activity.ts'
import type { PushContent } from './content.ts'

/**
 * One message for one device or browser. Messages with the same content share one content object, so that it is written
 * only once.
 */
export type PushMessage = { token: string } & (
  | { kind: 'push'; content: PushContent; webAuth: string | null; webP256: string | null }
  /** The token of the activity or, to start one, of the app for that type of activity. */
  | { kind: 'activity'; content: LiveActivityContent & { updatedAt: Date } }
)

export type PushProviderSettings = { clock: Clock; route: ProviderRoute; vapidSubject: string }

/** `App` is the part of an app's push settings that the provider reads. */
export type PushSender<App> = {
  isConfigured(app: App): boolean
  /** Returns one outcome for each message, in their order. */
  send(appId: AppId, app: App, messages: readonly PushMessage[]): Promise<ChannelOutcome[]>
  /** Waits for what is in flight. */
  close(): Promise<void>
}

export type PushProvider<App> = { open(settings: PushProviderSettings): PushSender<App> }

type ProviderParts<App, Credentials, Payload, Item> = {
  /** Returns undefined if the app lacks something that sending needs. */
  readCredentials(app: App, settings: PushProviderSettings): Credentials | undefined
  openChannel(settings: PushProviderSettings): Channel<Item>
  /** Called once for all messages that share the content. */
  write(message: PushMessage): Payload
  toItem(addressed: { appId: AppId; credentials: Credentials; message: PushMessage; push: Payload }): Item
}

export const definePushProvider = <App, Credentials, Payload, Item>({
  readCredentials,
  openChannel,
  write,
  toItem,
}: ProviderParts<App, Credentials, Payload, Item>): PushProvider<App> => ({
  open(settings) {
    const channel = openChannel(settings)
    const payloads = new WeakMap<object, { push: Payload }>()

    function payloadOf(message: PushMessage): Payload {
      const written = payloads.get(message.content) ?? { push: write(message) }
      payloads.set(message.content, written)
      return written.push
    }

    return {
      isConfigured: (app) => readCredentials(app, settings) !== undefined,
      async send(appId, app, messages) {
        const credentials = readCredentials(app, settings)
        // The credentials were removed after the message was expanded.
        if (credentials === undefined) return messages.map(() => ({ kind: 'misconfigured', reason: 'no credentials' }))
        return channel.send(
          messages.map((message) => toItem({ appId, credentials, message, push: payloadOf(message) })),
        )
      },
      close: () => channel.close(),
    }
  },
})

/** For providers without live activities, where no subscription has an activity token. */
export function contentOf(message: PushMessage): PushContent {
  if (message.kind === 'push') return message.content
  throw new Error('Live activities are delivered by APNs alone.')
}
