// Where the mailboxes are of those whom a message means. Asked of the network, so before the transaction that expands it; whoever
// comes in between is found among the others.

import type { AppId } from '../../lib/ids.ts'
import type { MessageId } from '../message.ts'
import { findRecipients } from '../recipient-store.ts'
import { isByRange, namesIn } from './audience.ts'
import type { Engine } from './engine.ts'
import { type Expansion, findMailDomains, inRuns, named } from './expand-statement.ts'
import { findDirectMail, findWaitingMail } from './expand-store.ts'
import { nextRange, RANGE } from './range.ts'

/** Of the message that is expanded next, as far as it goes at once. */
export async function lookUpNext(engine: Engine, appId: AppId, id: MessageId): Promise<void> {
  const { db, clock } = engine
  const message = await findWaitingMail(db, appId, id)
  if (!message || message.sendAfter > clock.now()) return
  if (message.audience.kind === 'recipients')
    return lookUp(engine, inRuns(appId, await findRecipients(db, appId, id, RANGE)))
  if (!isByRange(message.audience)) return lookUp(engine, named(appId, namesIn(id, message.audience)))
  const { candidates } = await nextRange(engine, db, appId, message, message.expandAt ?? clock.now())
  await lookUp(engine, candidates)
}

export async function lookUpDirect(engine: Engine, appId: AppId, limit: number): Promise<void> {
  const messages = await findDirectMail(engine.db, appId, engine.clock.now(), limit)
  const names = messages.flatMap(({ id, audience }) => namesIn(id, audience))
  if (names.length > 0) await lookUp(engine, named(appId, names))
}

async function lookUp({ db, email, log }: Engine, candidates: Expansion['candidates']): Promise<void> {
  const found = await findMailDomains(db, candidates)
  try {
    await email.lookUpHosts(found.map(({ domain }) => domain))
  } catch (error) {
    log.warn({ reason: (error as Error).message }, 'hosts of mail could not be looked up; mail is sent without')
  }
}
