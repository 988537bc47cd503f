// Where the mailboxes are of those whom a message means. Asked of the network, so before the transaction that expands it; whoever
// comes in between is found among the others.

import type { AppId, UserId } from '../../lib/ids.ts'
import type { Engine } from '../engine/engine.ts'
import { namesIn } from './audience.ts'
import { candidatesByName, candidatesOfUsers, type Expansion, findEmailDomains } from './insert-deliveries.ts'
import { findUnexpandedEmails } from './store.ts'

export async function lookUpDirect(engine: Engine, appId: AppId, limit: number): Promise<void> {
  const messages = await findUnexpandedEmails(engine.db, appId, engine.clock.now(), limit)
  const names = messages.flatMap(({ id, audience }) => namesIn(id, audience))
  if (names.length > 0) await lookUpCandidates(engine, candidatesByName(appId, names))
}

/** Of users who are added to a message. */
export const lookUpUsers = (engine: Engine, appId: AppId, userIds: readonly UserId[]): Promise<void> =>
  lookUpCandidates(engine, candidatesOfUsers(appId, userIds))

export async function lookUpCandidates(
  { db, email, log }: Engine,
  candidates: Pick<Expansion['candidates'], 'rows'>,
): Promise<void> {
  const found = await findEmailDomains(db, candidates)
  try {
    await email.lookUpMailHosts(found.map(({ domain }) => domain))
  } catch (error) {
    log.warn({ reason: (error as Error).message }, 'hosts of mail could not be looked up; mail is sent without')
  }
}
