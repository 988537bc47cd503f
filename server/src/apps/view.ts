// An app as it is answered. Credentials never leave the server: those that are set appear as a mask.

import { appNotFound } from '../lib/errors.ts'
import type { AppId, OrganizationId } from '../lib/ids.ts'
import type { AppsContext } from './context.ts'
import { withVapidPair } from './credentials/vapid.ts'
import { type AppAnswer, MASK } from './schema.ts'
import { type AppOverview, findAllApps, findApp } from './store.ts'
import { isOpenToUnverifiedSdks, warningsForApp } from './warnings.ts'

type ViewAppContext = Pick<AppsContext, 'db' | 'secrets' | 'countPlayers' | 'findAppsWithAddresses'>

export async function viewApp(ctx: ViewAppContext, appId: AppId, isConfigAlone = false): Promise<AppAnswer> {
  const found = await findApp(ctx.db, appId)
  if (!found) throw appNotFound()
  const [app] = await answersFor(ctx, [found])
  if (!app) throw appNotFound()
  if (!isConfigAlone) return app
  const { messageable_players, ...rest } = app
  return rest
}

export const listApps = async (ctx: ViewAppContext, organizationId: OrganizationId): Promise<AppAnswer[]> =>
  answersFor(ctx, await findAllApps(ctx.db, organizationId))

async function answersFor(ctx: ViewAppContext, apps: readonly AppOverview[]): Promise<AppAnswer[]> {
  const counts = await ctx.countPlayers(apps.map(({ id }) => id))
  const open = apps.filter(isOpenToUnverifiedSdks).map(({ id }) => id)
  const withAddresses = open.length > 0 ? await ctx.findAppsWithAddresses(open) : new Set<AppId>()
  const answers: AppAnswer[] = []
  for (const app of apps) {
    const { players = 0, messageable = 0 } = counts.get(app.id) ?? {}
    // Queries the database only once in the life of an app.
    const answer = appAnswer(await withVapidPair(ctx, app), players, messageable)
    answers.push({ ...answer, warnings: warningsForApp(app, withAddresses.has(app.id)) })
  }
  return answers
}

const masked = (sealed: string | undefined) => (sealed === undefined ? null : MASK)

function appAnswer(
  app: AppOverview & { vapidPublicKey: string },
  players: number,
  messageable: number,
): Omit<AppAnswer, 'warnings'> {
  const { pushSettings: settings, credentials } = app
  return {
    id: app.id,
    name: app.name,
    players,
    messageable_players: messageable,
    created_at: app.createdAt.toISOString(),
    updated_at: app.updatedAt.toISOString(),
    organization_id: app.organizationId,
    fcm_v1_service_account_json: masked(credentials.fcm_v1_service_account_json),
    fcm_sender_id: settings.fcm_sender_id ?? null,
    chrome_web_key: app.vapidPublicKey,
    chrome_web_origin: settings.chrome_web_origin ?? null,
    chrome_web_gcm_sender_id: settings.chrome_web_gcm_sender_id ?? null,
    chrome_web_default_notification_icon: settings.chrome_web_default_notification_icon ?? null,
    chrome_web_sub_domain: null,
    apns_env: settings.apns_env ?? 'production',
    apns_certificates: masked(credentials.apns_p12),
    apns_p12: masked(credentials.apns_p12),
    apns_p8: masked(credentials.apns_p8),
    apns_team_id: settings.apns_team_id ?? null,
    apns_key_id: settings.apns_key_id ?? null,
    apns_bundle_id: settings.apns_bundle_id ?? null,
    safari_site_origin: settings.safari_site_origin ?? null,
    safari_push_id: settings.safari_push_id ?? null,
    safari_apns_certificates: masked(credentials.safari_apns_p12),
    safari_apns_p12: masked(credentials.safari_apns_p12),
    safari_icon_16_16: settings.safari_icon_16_16 ?? null,
    safari_icon_32_32: settings.safari_icon_32_32 ?? null,
    safari_icon_64_64: settings.safari_icon_64_64 ?? null,
    safari_icon_128_128: settings.safari_icon_128_128 ?? null,
    safari_icon_256_256: settings.safari_icon_256_256 ?? null,
    site_name: settings.site_name ?? null,
    huawei_app_id: settings.huawei_app_id ?? null,
    huawei_app_secret: masked(credentials.huawei_app_secret),
    huawei_project_id: settings.huawei_project_id ?? null,
    huawei_package_name: settings.huawei_package_name ?? null,
    adm_client_id: settings.adm_client_id ?? null,
    adm_client_secret: masked(credentials.adm_client_secret),
    wns_package_sid: settings.wns_package_sid ?? null,
    wns_client_secret: masked(credentials.wns_client_secret),
    additional_data_is_root_payload: settings.additional_data_is_root_payload ?? false,
    keyless: app.keylessSdk,
    require_identity: app.identityRequired,
    identity_public_key: app.identityPublicKey,
  }
}
