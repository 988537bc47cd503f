import { contentOf, definePushProvider } from '../provider.ts'
import { openHuaweiChannel } from './channel.ts'
import type { HuaweiCredentials } from './credentials.ts'
import { writeHuaweiPush } from './payload.ts'

type HuaweiAppSettings = {
  name: string
  settings: {
    huawei_app_id?: string | undefined
    huawei_project_id?: string | undefined
    huawei_package_name?: string | undefined
    site_name?: string | undefined
  }
  secrets: { huawei_app_secret?: { secret: string } | undefined }
}

export const huaweiProvider = definePushProvider({
  readCredentials({ name, settings, secrets }: HuaweiAppSettings): HuaweiCredentials | undefined {
    if (settings.huawei_app_id === undefined || !secrets.huawei_app_secret) return undefined
    return {
      appId: settings.huawei_app_id,
      secret: secrets.huawei_app_secret.secret,
      projectId: settings.huawei_project_id,
      packageName: settings.huawei_package_name,
      defaultTitle: settings.site_name ?? name,
    }
  },
  openChannel: ({ clock, route }) => openHuaweiChannel({ clock, route }),
  write: (message) => writeHuaweiPush(contentOf(message)),
  toItem: ({ appId, credentials, message, push }) => ({ appId, token: message.token, credentials, push }),
})
