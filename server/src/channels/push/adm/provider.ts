import { contentOf, definePushProvider } from '../provider.ts'
import { type AdmCredentials, openAdmChannel, writeAdmPush } from './channel.ts'

type AdmAppSettings = {
  settings: { adm_client_id?: string | undefined }
  secrets: { adm_client_secret?: { secret: string } | undefined }
}

export const admProvider = definePushProvider({
  readCredentials({ settings, secrets }: AdmAppSettings): AdmCredentials | undefined {
    if (settings.adm_client_id === undefined || !secrets.adm_client_secret) return undefined
    return { clientId: settings.adm_client_id, secret: secrets.adm_client_secret.secret }
  },
  openChannel: ({ clock, route }) => openAdmChannel({ clock, route }),
  write: (message) => writeAdmPush(contentOf(message)),
  toItem: ({ appId, credentials, message, push }) => ({ appId, token: message.token, credentials, push }),
})
