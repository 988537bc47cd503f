import { signaturesOf } from './dkim.ts'
import type { MailItem } from './message.ts'
import { composeMail, writeMail } from './mime.ts'
import type { Wire } from './wire.ts'

/** As it goes out, signed; what all who get it share follows in pieces that nobody copies. Rejects with `BadMail`. */
export async function buildPieces(item: MailItem): Promise<{ message: Wire; files: readonly Wire[] }> {
  const mail = composeMail(item)
  return { message: writeMail(mail, await signaturesOf(mail, item.dkim, item.date)), files: mail.shared.files }
}

/** The whole mail at once. */
export async function buildMail(item: MailItem): Promise<Wire> {
  const { message, files } = await buildPieces(item)
  return files.length === 0 ? message : (Buffer.concat([message, ...files]) as Wire)
}
