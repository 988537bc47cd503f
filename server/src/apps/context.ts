// The dependencies of the operations on apps and keys.

import type { Clock } from '../lib/clock.ts'
import type { AppId } from '../lib/ids.ts'
import type { SecretBox } from '../lib/secrets.ts'
import type { Db } from '../storage/db.ts'
import type { AppPlan } from './app.ts'
import type { ConfigureNew } from './create.ts'
import type { KeyUsage } from './keys/usage.ts'

export type AppsContext = {
  db: Db
  clock: Clock
  secrets: SecretBox
  configureNew?: ConfigureNew | undefined
  defaultPlan?: AppPlan | undefined
  usage: Pick<KeyUsage, 'flush'>
  /** The address at which the internet reaches this server, if it is configured. */
  publicUrl: string | undefined
  /** Passed in, because subscriptions belong to a later domain. */
  countPlayers: CountPlayers
  findAppsWithAddresses: (appIds: readonly AppId[]) => Promise<Set<AppId>>
}

export type CountPlayers = (appIds: readonly AppId[]) => Promise<Map<AppId, { players: number; messageable: number }>>
