import { contentOf, definePushProvider } from '../provider.ts'
import { openWnsChannel, type WnsCredentials } from './channel.ts'
import { writeWnsPush } from './payload.ts'

type WnsAppSettings = {
  settings: { wns_package_sid?: string | undefined }
  secrets: { wns_client_secret?: { secret: string } | undefined }
}

export const wnsProvider = definePushProvider({
  readCredentials({ settings, secrets }: WnsAppSettings): WnsCredentials | undefined {
    if (settings.wns_package_sid === undefined || !secrets.wns_client_secret) return undefined
    return { clientId: settings.wns_package_sid, secret: secrets.wns_client_secret.secret }
  },
  openChannel: ({ clock, route }) => openWnsChannel({ clock, route }),
  write: (message) => writeWnsPush(contentOf(message)),
  toItem: ({ appId, credentials, message, push }) => ({ appId, channelUri: message.token, credentials, push }),
})
