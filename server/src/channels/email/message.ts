import type { KeyObject } from 'node:crypto'
import type { Pieces } from '../../lib/placeholders.ts'
import type { TrafficSource } from '../channel.ts'

/** What all who get the same mail share. It is encoded once for each object: do not change one that was sent. */
export type EmailContent = {
  from: { name?: string; address: string }
  replyTo?: string
  subject: string
  /** With places for the recipient's references. One piece: there is none. */
  html: Pieces
  text: Pieces
  /** Further headers, with places too. */
  headers: readonly (readonly [name: string, pieces: Pieces])[]
  /** What hangs on to it. */
  files?: readonly EmailAttachment[]
}

/** A file that is somewhere else. Without a type it is what its server says. */
export type AttachmentSource = { url: string; name: string; contentType?: string | undefined }

/** `encoded` is base64, in lines: made once for all mails that it hangs on to. */
export type EmailAttachment = { name: string; contentType: string; encoded: Buffer }

export type EmailItem = {
  content: EmailContent
  /** Names this delivery to the servers on its way, which may report on it; letters, digits, - and _. */
  reference: string
  /** What stands at a place of the content; of the same letters. */
  referenceFor(placeholder: string): string
  to: string
  /** With its angle brackets. */
  messageIdHeader: string
  /** Where bounces go; empty for nobody. */
  envelopeFrom: string
  date: Date
  dkim: readonly DkimSigningKey[]
  /** Further recipients that no header names. What becomes of the mail is what becomes of it for `to`. */
  bcc?: readonly string[]
  /** The inbox provider of the recipient: each is slowed down by itself. */
  inboxProvider: string
  source: TrafficSource
}

export type DkimSigningKey = { domain: string; selector: string; algorithm: 'rsa' | 'ed25519'; privateKey: KeyObject }

/** Something in the mail itself that no server could take. */
export class InvalidEmail extends Error {}
