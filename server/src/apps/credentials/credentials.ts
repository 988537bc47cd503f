// The credentials of an app in clear, for sending. Nothing else may ask for them, and no answer or log may hold them.

import type { AppId } from '../../lib/ids.ts'
import type { SecretBox } from '../../lib/secrets.ts'
import type { Db } from '../../storage/db.ts'
import { findApp } from '../store.ts'
import type { OpenedP12 } from './open-p12.ts'
import type { ClientSecret, FcmServiceAccount } from './read-credential.ts'
import { openCredential } from './sealed.ts'
import { type VapidPair, withVapidPair } from './vapid.ts'

export type AppleEnvironment = 'production' | 'development'

/** Keys and certificates are PEM. */
export type PushCredentials = {
  vapid: VapidPair
  fcm: FcmServiceAccount | undefined
  apns:
    | { kind: 'token'; environment: AppleEnvironment; key: string; keyId: string; teamId: string; topic: string }
    | { kind: 'certificate'; environment: AppleEnvironment; key: string; certificate: string; topic: string | null }
    | undefined
  /** The certificate of a website, for Safari before it took part in web push. */
  safari: OpenedP12 | undefined
  /** Not a secret, but needed wherever they are: whether `data` also stands at the root of a push payload. */
  isDataAtRoot: boolean
  huawei:
    | {
        appId: string
        secret: string
        projectId: string | undefined
        packageName: string | undefined
        defaultTitle: string
      }
    | undefined
  adm: OAuthClientCredentials | undefined
  wns: OAuthClientCredentials | undefined
}

export type OAuthClientCredentials = { clientId: string; secret: string }

/** Undefined when there is no such app. Asked for once per batch of messages, not once per message. */
export async function readPushCredentials(
  ctx: { db: Db; secrets: SecretBox },
  appId: AppId,
): Promise<PushCredentials | undefined> {
  const found = await findApp(ctx.db, appId)
  if (!found) return undefined
  const app = await withVapidPair(ctx, found)
  const opened = <Name extends Parameters<typeof openCredential>[3]>(name: Name) =>
    openCredential(ctx.secrets, appId, app.credentials, name)
  const account = (clientId: string | undefined, kept: ClientSecret | undefined) =>
    clientId !== undefined && kept ? { clientId, secret: kept.secret } : undefined
  const { huawei_app_id, huawei_project_id, huawei_package_name, site_name } = app.pushSettings
  const huawei = account(huawei_app_id, opened('huawei_app_secret'))
  const { apns_key_id: keyId, apns_team_id: teamId, apns_bundle_id: bundleId, apns_env } = app.pushSettings
  const environment: AppleEnvironment = apns_env === 'development' ? 'development' : 'production'
  const [p8, p12] = [opened('apns_p8'), opened('apns_p12')]
  const token =
    p8 && keyId && teamId && bundleId
      ? { kind: 'token' as const, environment, key: p8.key, keyId, teamId, topic: bundleId }
      : undefined
  const certificate = p12 && {
    kind: 'certificate' as const,
    environment,
    key: p12.key,
    certificate: p12.certificate,
    topic: p12.subjectId ?? bundleId ?? null,
  }
  return {
    vapid: { publicKey: app.vapidPublicKey, privateKey: opened('vapid')?.privateKey ?? '' },
    fcm: opened('fcm_v1_service_account_json'),
    apns: token ?? certificate,
    safari: opened('safari_apns_p12'),
    isDataAtRoot: app.pushSettings.additional_data_is_root_payload ?? false,
    huawei: huawei && {
      appId: huawei.clientId,
      secret: huawei.secret,
      projectId: huawei_project_id,
      packageName: huawei_package_name,
      defaultTitle: site_name ?? app.name,
    },
    adm: account(app.pushSettings.adm_client_id, opened('adm_client_secret')),
    wns: account(app.pushSettings.wns_package_sid, opened('wns_client_secret')),
  }
}
