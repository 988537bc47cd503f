import { signaturesOf } from './dkim.ts'
import type { MailItem } from './message.ts'
import { composeMail, writeMail } from './mime.ts'
import type { Wire } from './wire.ts'

/** The whole mail, signed, as it goes out. Rejects with `BadMail`. */
export async function buildMail(item: MailItem): Promise<Wire> {
  const mail = composeMail(item)
  return writeMail(mail, await signaturesOf(mail, item.dkim, item.date))
}
