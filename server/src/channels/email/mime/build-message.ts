import type { EmailAddress } from '../address.ts'
import type { EmailItem } from '../message.ts'
import { composeMessage, writeMessage } from './compose-message.ts'
import { signWithDkim } from './dkim.ts'
import type { WireText } from './wire-format.ts'

/**
 * The email as it is sent, with its signatures. The files, which all recipients share, follow as buffers that are never
 * copied. Rejects with `InvalidEmail`.
 */
export async function buildMessagePieces(
  item: EmailItem,
  to?: EmailAddress,
): Promise<{ message: WireText; files: readonly Buffer[] }> {
  const mail = composeMessage(item, to)
  const signatures = item.dkim.length > 0 ? await signWithDkim(mail, item.dkim, item.date) : ''
  return { message: writeMessage(mail, signatures), files: mail.shared.files }
}

/** The whole email in one buffer. */
export async function buildMessage(item: EmailItem): Promise<Buffer> {
  const { message, files } = await buildMessagePieces(item)
  return Buffer.concat([Buffer.from(message, 'latin1'), ...files])
}
