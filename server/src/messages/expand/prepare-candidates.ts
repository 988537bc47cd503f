// Lets channels look up what sending will need before candidates become deliveries. This may use the network, so it
// runs before the transaction that expands them. A candidate that appears in between is sent to without the result.

import type { AppId, UserId } from '../../lib/ids.ts'
import type { Engine } from '../engine/types.ts'
import { namesIn } from './audience.ts'
import { candidatesByName, candidatesOfUsers } from './candidates.ts'
import { findUnexpandedDirectOf } from './store.ts'

/** Prepares the candidates of direct messages whose time has come. */
export async function prepareDirect(engine: Engine, appId: AppId, limit: number): Promise<void> {
  const channels = channelsThatPrepare(engine)
  const messages = await findUnexpandedDirectOf(engine.db, appId, channels, engine.clock.now(), limit)
  for (const [channel, some] of Map.groupBy(messages, ({ channel }) => channel)) {
    const names = some.flatMap(({ id, audience }) => namesIn(id, audience))
    if (names.length > 0)
      await engine.channels[channel].prepareCandidates?.(engine, candidatesByName(appId, names).rows)
  }
}

/** Prepares users who are about to be added to an open message. */
export async function prepareUsers(engine: Engine, appId: AppId, userIds: readonly UserId[]): Promise<void> {
  const candidates = candidatesOfUsers(appId, userIds)
  for (const channel of channelsThatPrepare(engine))
    await engine.channels[channel].prepareCandidates?.(engine, candidates.rows)
}

const channelsThatPrepare = ({ channels }: Engine) =>
  (Object.keys(channels) as (keyof Engine['channels'])[]).filter((channel) => channels[channel].prepareCandidates)
