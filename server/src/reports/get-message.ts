import type { AppId } from '../lib/ids.ts'
import type { Message } from '../messages/message.ts'
import { findMessage } from '../messages/store.ts'
import { messageNotFound, readMessageId } from '../messages/view.ts'
import type { Db } from '../storage/db.ts'

export async function getMessage(db: Db, appId: AppId, given: string): Promise<Message> {
  const found = await findMessage(db, appId, readMessageId(given))
  if (!found) throw messageNotFound()
  return found
}
