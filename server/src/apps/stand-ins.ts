// Apps whose providers are stand-ins: on a server that was started for trying things out, whatever an app lacks is given to it,
// however and whenever it was made; and a server that is not can tell which apps still have it.

import type { Clock } from '../lib/clock.ts'
import type { AppId } from '../lib/ids.ts'
import type { SecretBox } from '../lib/secrets.ts'
import type { Db } from '../storage/db.ts'
import type { AppBody } from './app-schema.ts'
import { updateApp } from './configure.ts'
import { setSms } from './configure-sms.ts'
import { SYSTEM } from './schema.ts'
import { open } from './sealed.ts'
import type { SmsBody } from './sms-schema.ts'
import { type AppOverview, findAllApps, lockApp } from './store.ts'

/** Credentials that stand-ins take, and what they are known by afterwards. */
export type StandIns = {
  push: AppBody
  sms: SmsBody
  marks: { apnsKeyId: string; fcmProject: string; smsAccount: string }
}

type Context = { db: Db; clock: Clock; secrets: SecretBox }

const hasApns = ({ credentials }: AppOverview) =>
  credentials.apns_p8 !== undefined || credentials.apns_p12 !== undefined
const hasFcm = ({ credentials }: AppOverview) => credentials.fcm_v1_service_account_json !== undefined

/** What an app has of its own stays. How many apps got something. */
export async function fillWithStandIns(ctx: Context, { push, sms }: StandIns): Promise<number> {
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

const lacksSomething = (app: AppOverview) => !hasApns(app) || !hasFcm(app) || app.smsSettings === null

function missingOf(app: AppOverview, push: AppBody): AppBody {
  const { fcm_v1_service_account_json, apns_bundle_id, ...apns } = push
  return {
    ...(!hasFcm(app) && { fcm_v1_service_account_json }),
    ...(!hasApns(app) && { ...apns, apns_bundle_id: app.pushSettings.apns_bundle_id ?? apns_bundle_id }),
  }
}

/** Those that nothing real can be sent for, each with what is not its own. */
export async function findStandIns(
  { db, secrets }: Pick<Context, 'db' | 'secrets'>,
  { apnsKeyId, fcmProject, smsAccount }: StandIns['marks'],
): Promise<{ appId: AppId; name: string; providers: string[] }[]> {
  const apps = await findAllApps(db)
  return apps.flatMap((app) => {
    const { id, name, pushSettings, smsSettings } = app
    const providers = [
      ...(hasApns(app) && pushSettings.apns_key_id === apnsKeyId ? ['APNs'] : []),
      ...(isOfProject(secrets, app, fcmProject) ? ['FCM'] : []),
      ...(smsSettings?.kind === 'twilio' && smsSettings.account_sid === smsAccount ? ['SMS'] : []),
    ]
    return providers.length > 0 ? [{ appId: id, name, providers }] : []
  })
}

function isOfProject(secrets: SecretBox, { id, credentials }: AppOverview, project: string): boolean {
  try {
    return open(secrets, id, credentials, 'fcm_v1_service_account_json')?.projectId === project
  } catch {
    // Sealed with another key, which is told elsewhere.
    return false
  }
}
