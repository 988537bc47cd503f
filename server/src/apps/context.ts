// What the operations on apps and keys are made of.

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
  /** Address under which the world reaches this server, if it was told. */
  publicUrl: string | undefined
  /** Subscriptions belong to a later domain, which counts them. */
  countPlayers: CountPlayers
  findAppsWithAddresses: (appIds: readonly AppId[]) => Promise<Set<AppId>>
}

export type CountPlayers = (appIds: readonly AppId[]) => Promise<Map<AppId, { players: number; messageable: number }>>
