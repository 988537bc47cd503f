import { contentOf, definePushProvider } from '../provider.ts'
import { openWebPushChannel } from './channel.ts'
import { writeWebPush } from './payload.ts'
import type { VapidKeys } from './vapid.ts'

/** Every app has a key pair from the start. */
type WebPushAppSettings = { vapid: Omit<VapidKeys, 'subject'> }

export const webPushProvider = definePushProvider({
  readCredentials: ({ vapid }: WebPushAppSettings, { vapidSubject }): VapidKeys => ({
    ...vapid,
    subject: vapidSubject,
  }),
  openChannel: ({ clock, route }) => openWebPushChannel({ clock, route }),
  write: (message) => writeWebPush(contentOf(message)),
  toItem({ appId, credentials, message, push }) {
    const { webAuth = null, webP256 = null } = message.kind === 'push' ? message : {}
    return { appId, endpoint: message.token, p256dh: webP256 ?? '', auth: webAuth ?? '', vapid: credentials, push }
  },
})
