// Apps whose providers are stand-ins. A server that was started for trials gives every app the provider settings that
// it lacks, however and whenever the app was created; any other server can report which apps still have them.

import type { Clock } from '../lib/clock.ts'
import type { AppId } from '../lib/ids.ts'
import type { SecretBox } from '../lib/secrets.ts'
import type { Db } from '../storage/db.ts'
import { SYSTEM } from './app.ts'
import { updateApp } from './configure.ts'
import { openCredential } from './credentials/sealed.ts'
import type { AppBody } from './schema.ts'
import { setSms } from './sms/configure.ts'
import type { SmsBody } from './sms/schema.ts'
import { type AppOverview, findAllApps, lockApp } from './store.ts'

/** Credentials that stand-ins accept, and what identifies them afterwards. */
export type StandIns = {
  push: AppBody
  sms: SmsBody
  marks: StandInMarks
}

export type StandInMarks = {
  apnsKeyId: string
  fcmProject: string
  huaweiAppId: string
  admClientId: string
  wnsPackageSid: string
  smsAccount: string
}

type StandInContext = { db: Db; clock: Clock; secrets: SecretBox }

const hasApns = ({ credentials }: AppOverview) =>
  credentials.apns_p8 !== undefined || credentials.apns_p12 !== undefined

/**
 * The settings that an app needs for each push provider. If the app lacks the provider's credentials, it gets all of
 * them from the stand-in.
 */
const PROVIDERS: { has: (app: AppOverview) => boolean; fields: (keyof AppBody)[] }[] = [
  { has: hasApns, fields: ['apns_p8', 'apns_key_id', 'apns_team_id', 'apns_bundle_id'] },
  {
    has: ({ credentials }) => credentials.fcm_v1_service_account_json !== undefined,
    fields: ['fcm_v1_service_account_json'],
  },
  {
    has: ({ credentials }) => credentials.huawei_app_secret !== undefined,
    fields: ['huawei_app_id', 'huawei_app_secret', 'huawei_package_name'],
  },
  {
    has: ({ credentials }) => credentials.adm_client_secret !== undefined,
    fields: ['adm_client_id', 'adm_client_secret'],
  },
  {
    has: ({ credentials }) => credentials.wns_client_secret !== undefined,
    fields: ['wns_package_sid', 'wns_client_secret'],
  },
]

/** Keeps what an app has of its own. Returns how many apps were changed. */
export async function fillWithStandIns(ctx: StandInContext, { push, sms }: StandIns): Promise<number> {
  let filled = 0
  for (const { id } of (await findAllApps(ctx.db)).filter(lacksSomething))
    await ctx.db.transaction(async (db) => {
      const app = await lockApp(db, id)
      if (!app || !lacksSomething(app)) return
      await updateApp({ ...ctx, db }, app.organizationId, id, missingOf(app, push), SYSTEM)
      if (app.smsSettings === null) await setSms({ ...ctx, db }, id, sms, SYSTEM)
      filled++
    })
  return filled
}

const lacksSomething = (app: AppOverview) => app.smsSettings === null || PROVIDERS.some(({ has }) => !has(app))

function missingOf(app: AppOverview, push: AppBody): AppBody {
  const missing = PROVIDERS.filter(({ has }) => !has(app)).flatMap(({ fields }) => fields)
  const { apns_bundle_id, huawei_package_name } = app.pushSettings
  return {
    ...Object.fromEntries(missing.map((field) => [field, push[field]])),
    // The names of the customer's own software are right for any provider.
    ...(apns_bundle_id !== undefined && { apns_bundle_id }),
    ...(huawei_package_name !== undefined && { huawei_package_name }),
  }
}

/** The apps that still use stand-ins, each with the providers concerned, to which nothing real can be sent. */
export async function findStandIns(
  { db, secrets }: Pick<StandInContext, 'db' | 'secrets'>,
  marks: StandInMarks,
): Promise<{ appId: AppId; name: string; providers: string[] }[]> {
  const apps = await findAllApps(db)
  return apps.flatMap((app) => {
    const { id, name, pushSettings, smsSettings } = app
    const providers = [
      ...(hasApns(app) && pushSettings.apns_key_id === marks.apnsKeyId ? ['APNs'] : []),
      ...(isOfProject(secrets, app, marks.fcmProject) ? ['FCM'] : []),
      ...(pushSettings.huawei_app_id === marks.huaweiAppId ? ['Huawei'] : []),
      ...(pushSettings.adm_client_id === marks.admClientId ? ['ADM'] : []),
      ...(pushSettings.wns_package_sid === marks.wnsPackageSid ? ['WNS'] : []),
      ...(smsSettings?.kind === 'twilio' && smsSettings.account_sid === marks.smsAccount ? ['SMS'] : []),
    ]
    return providers.length > 0 ? [{ appId: id, name, providers }] : []
  })
}

function isOfProject(secrets: SecretBox, { id, credentials }: AppOverview, project: string): boolean {
  try {
    return openCredential(secrets, id, credentials, 'fcm_v1_service_account_json')?.projectId === project
  } catch {
    // Sealed with another key, which is reported elsewhere.
    return false
  }
}
