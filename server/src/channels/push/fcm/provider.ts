import { contentOf, definePushProvider } from '../provider.ts'
import type { GoogleServiceAccount } from './access-token.ts'
import { openFcmChannel } from './channel.ts'
import { writeFcmPush } from './payload.ts'

type FcmAppSettings = { secrets: { fcm_v1_service_account_json?: GoogleServiceAccount | undefined } }

export const fcmProvider = definePushProvider({
  readCredentials: ({ secrets }: FcmAppSettings) => secrets.fcm_v1_service_account_json,
  openChannel: ({ clock, route }) => openFcmChannel({ clock, route }),
  write: (message) => writeFcmPush(contentOf(message)),
  toItem: ({ appId, credentials, message, push }) => ({ appId, token: message.token, credentials, push }),
})
