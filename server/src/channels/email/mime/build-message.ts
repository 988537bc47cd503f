import type { Address } from '../address.ts'
import type { MailItem } from '../message.ts'
import { composeMail, writeMail } from './compose-message.ts'
import { signaturesOf } from './dkim.ts'
import type { Wire } from './wire-format.ts'

/** As it goes out, signed; what all who get it share follows in pieces that nobody copies. Rejects with `BadMail`. */
export async function buildPieces(item: MailItem, to?: Address): Promise<{ message: Wire; files: readonly Buffer[] }> {
  const mail = composeMail(item, to)
  const signatures = item.dkim.length > 0 ? await signaturesOf(mail, item.dkim, item.date) : ''
  return { message: writeMail(mail, signatures), files: mail.shared.files }
}

/** The whole mail at once. */
export async function buildMail(item: MailItem): Promise<Buffer> {
  const { message, files } = await buildPieces(item)
  return Buffer.concat([Buffer.from(message, 'latin1'), ...files])
}
