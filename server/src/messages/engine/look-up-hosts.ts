// Where the mailboxes are of those whom a message means. Asked of the network, so before the transaction that expands it; whoever
// comes in between is found among the others.

import type { AppId, UserId } from '../../lib/ids.ts'
import type { MessageId } from '../message.ts'
import { isByRange, namesIn } from './audience.ts'
import type { Engine } from './engine.ts'
import { findMailDomains, named, ofUsers } from './expand-statement.ts'
import { findDirectMail, findWaitingMail } from './expand-store.ts'
import { nextRange } from './range.ts'

/** Of the message that is expanded next, as far as it goes at once. */
export async function lookUpNext(engine: Engine, appId: AppId, id: MessageId): Promise<void> {
  const { db, clock } = engine
  const message = await findWaitingMail(db, appId, id)
  if (!message || message.sendAfter > clock.now()) return
  if (!isByRange(message.audience)) return lookUp(engine, named(appId, namesIn(id, message.audience)))
  const { candidates } = await nextRange(engine, db, appId, message, message.expandAt ?? clock.now())
  await lookUp(engine, candidates)
}

export async function lookUpDirect(engine: Engine, appId: AppId, limit: number): Promise<void> {
  const messages = await findDirectMail(engine.db, appId, engine.clock.now(), limit)
  const names = messages.flatMap(({ id, audience }) => namesIn(id, audience))
  if (names.length > 0) await lookUp(engine, named(appId, names))
}

/** Of users who are added to a message. */
export const lookUpUsers = (engine: Engine, appId: AppId, userIds: readonly UserId[]): Promise<void> =>
  lookUp(engine, ofUsers(appId, userIds))

async function lookUp({ db, email, log }: Engine, candidates: Parameters<typeof findMailDomains>[1]): Promise<void> {
  const found = await findMailDomains(db, candidates)
  try {
    await email.lookUpHosts(found.map(({ domain }) => domain))
  } catch (error) {
    log.warn({ reason: (error as Error).message }, 'hosts of mail could not be looked up; mail is sent without')
  }
}
