// A message that reaches nobody because the app has no credentials for its recipients' providers is accepted, and the
// answer warns about it. Messages of properly configured apps must not pay for this check: an app's configuration is
// cached for a few seconds, and for large apps only the message itself is checked, not the subscriptions.

import { type AppOverview, findApp } from '../../apps/store.ts'
import { pushFactsOf, pushProviderNames } from '../../channels/push/catalog.ts'
import type { Clock } from '../../lib/clock.ts'
import type { AppId } from '../../lib/ids.ts'
import { ownProperty } from '../../lib/own-property.ts'
import type { Db } from '../../storage/db.ts'
import { sql } from '../../storage/sql.ts'
import { userIdOfRow } from '../../users/reference-store.ts'
import { reachableSql } from '../../users/subscriptions/reachable.ts'
import type { SubscriptionType } from '../../users/subscriptions/subscription.ts'
import { type Provider, providerOf } from '../delivery.ts'
import { findSubscribedTypes, findSubscribedTypesOfTargets } from './reach-store.ts'
import type { Submission } from './submission.ts'

type SetUp = { has: (app: AppOverview) => boolean; warning: string }

const pushSetUps = pushProviderNames.flatMap((name): [Provider, SetUp][] => {
  const { setUp } = pushFactsOf(name)
  if (!setUp) return []
  const { credentials, devices, service, settings } = setUp
  return [
    [
      name,
      {
        has: (app) => credentials.some((credential) => ownProperty(app.credentials, credential) !== undefined),
        warning: `${devices} cannot be reached: the app has no credentials for ${service}; set ${settings} with PUT /apps/{app_id}`,
      },
    ],
  ]
})

/**
 * The providers that the app must configure before anything can be sent through them, with the warning that says what
 * is missing and how to set it.
 */
const SET_UPS: ReadonlyMap<Provider, SetUp> = new Map<Provider, SetUp>([
  ...pushSetUps,
  [
    'sms',
    {
      has: ({ smsSettings }) => smsSettings !== null,
      warning:
        'Text messages cannot be sent: the app has no provider for them; set one with PUT /apps/{app_id}/sms_settings',
    },
  ],
])

const REMEMBERED_MS = 5_000
const MOST_REMEMBERED = 10_000
/**
 * An app with this many subscriptions is run by somebody who looks at reports, so its subscriptions are not checked.
 */
const LARGE_APP = 1_000
const MOST_TARGETS = 100

export type WarnUnreachable = (
  appId: AppId,
  waiting: Pick<Submission, 'types' | 'targets'>,
) => Promise<string[]> | string[]

export function createWarnUnreachable({ db, clock }: { db: Db; clock: Pick<Clock, 'leaseMs'> }): WarnUnreachable {
  const remembered = new Map<AppId, { missing: readonly Provider[]; untilMs: number }>()

  function remember(appId: AppId, missing: readonly Provider[]) {
    if (remembered.size >= MOST_REMEMBERED) remembered.clear()
    remembered.set(appId, { missing, untilMs: clock.leaseMs() + REMEMBERED_MS })
  }

  async function look(appId: AppId, { types, targets }: Pick<Submission, 'types' | 'targets'>): Promise<string[]> {
    const app = await findApp(db, appId)
    const missing = app ? [...SET_UPS].filter(([, { has }]) => !has(app)).map(([name]) => name) : []
    if (missing.length === 0) remember(appId, missing)
    if (!types.some((type) => isMissing(missing, type))) return []
    if (types.every((type) => isMissing(missing, type))) return warningsFor(missing, types)
    const ofApp = await findSubscribedTypes(db, appId, reachableSql(sql`s`), LARGE_APP)
    if (!ofApp) remember(appId, missing)
    if (!ofApp || ![...ofApp].some((type) => isMissing(missing, type))) return []
    const present =
      targets && targets.length <= MOST_TARGETS
        ? await findSubscribedTypesOfTargets(db, appId, userIdOfRow(appId), reachableSql(sql`s`), targets)
        : ofApp
    const reached = types.filter((type) => present.has(type))
    return reached.length > 0 && reached.every((type) => isMissing(missing, type)) ? warningsFor(missing, reached) : []
  }

  return (appId, waiting) => {
    if (waiting.types.every((type) => type === 'Email')) return []
    const known = remembered.get(appId)
    if (known && known.untilMs > clock.leaseMs())
      return waiting.types.every((type) => isMissing(known.missing, type))
        ? warningsFor(known.missing, waiting.types)
        : []
    // The message is accepted already. A failure of this check must not turn that into an error.
    return look(appId, waiting).catch(() => [])
  }
}

const isMissing = (missing: readonly string[], type: string) =>
  missing.includes(providerOf(type as SubscriptionType) ?? '')

const warningsFor = (missing: readonly Provider[], types: readonly string[]) =>
  missing
    .filter((name) => types.some((type) => providerOf(type as SubscriptionType) === name))
    .flatMap((name) => SET_UPS.get(name)?.warning ?? [])
