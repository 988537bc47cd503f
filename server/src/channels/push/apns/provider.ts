import { contentOf, definePushProvider, type PushMessage } from '../provider.ts'
import { type ApnsCredentials, openApnsChannel } from './channel.ts'
import { writeLiveActivityPush } from './live-activity.ts'
import { writeApnsPush, writeSafariPush } from './payload.ts'

/** Keys and certificates are in PEM. `subjectId` is the bundle or website that the certificate was issued for. */
type AppleCertificate = { key: string; certificate: string; subjectId: string | null }

type ApnsAppSettings = {
  settings: {
    apns_env?: string | undefined
    apns_key_id?: string | undefined
    apns_team_id?: string | undefined
    apns_bundle_id?: string | undefined
  }
  secrets: { apns_p8?: { key: string } | undefined; apns_p12?: AppleCertificate | undefined }
}

export function readApnsCredentials({ settings, secrets }: ApnsAppSettings): ApnsCredentials | undefined {
  const { apns_key_id: keyId, apns_team_id: teamId, apns_bundle_id: bundleId } = settings
  const { apns_p8: p8, apns_p12: p12 } = secrets
  const environment = settings.apns_env === 'development' ? 'development' : 'production'
  if (p8 && keyId && teamId && bundleId)
    return { kind: 'token', environment, key: p8.key, keyId, teamId, topic: bundleId }
  if (!p12) return undefined
  const { key, certificate, subjectId } = p12
  return { kind: 'certificate', environment, key, certificate, topic: subjectId ?? bundleId ?? null }
}

export const apnsProvider = definePushProvider({
  readCredentials: readApnsCredentials,
  openChannel: ({ clock, route }) => openApnsChannel({ clock, route }),
  write: (message: PushMessage) =>
    message.kind === 'activity'
      ? writeLiveActivityPush(message.content, message.content.updatedAt)
      : writeApnsPush(message.content),
  toItem: ({ appId, credentials, message, push }) => ({ appId, token: message.token, credentials, push }),
})

/** Safari before it supported web push: a website is identified by its certificate. */
export const safariProvider = definePushProvider({
  readCredentials({
    secrets,
  }: {
    secrets: { safari_apns_p12?: AppleCertificate | undefined }
  }): ApnsCredentials | undefined {
    if (!secrets.safari_apns_p12) return undefined
    const { key, certificate, subjectId } = secrets.safari_apns_p12
    return { kind: 'certificate', environment: 'production', key, certificate, topic: subjectId }
  },
  openChannel: ({ clock, route }) => openApnsChannel({ clock, route }),
  write: (message: PushMessage) => writeSafariPush(contentOf(message)),
  toItem: ({ appId, credentials, message, push }) => ({ appId, token: message.token, credentials, push }),
})
