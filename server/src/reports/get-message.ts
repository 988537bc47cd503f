import type { AppId } from '../lib/ids.ts'
import type { Message } from '../messages/message.ts'
import { findMessage } from '../messages/store.ts'
import { messageNotFound, parseMessageId } from '../messages/view.ts'
import type { Db } from '../storage/db.ts'

export async function getMessage(db: Db, appId: AppId, given: string): Promise<Message> {
  const found = await findMessage(db, appId, parseMessageId(given))
  if (!found) throw messageNotFound()
  return found
}
