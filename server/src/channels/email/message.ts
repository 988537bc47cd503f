import type { KeyObject } from 'node:crypto'
import type { Pieces } from '../../lib/placeholders.ts'
import type { TrafficSource } from '../channel.ts'

/**
 * What all recipients of the same email share. It is encoded once per object, so an object that was sent must not be
 * changed.
 */
export type EmailContent = {
  from: { name?: string; address: string }
  replyTo?: string
  subject: string
  /** With placeholders for the recipient's references. A single piece has none. */
  html: Pieces
  text: Pieces
  /** Further headers, which may have placeholders too. */
  headers: readonly (readonly [name: string, pieces: Pieces])[]
  /** Attachments. */
  files?: readonly EmailAttachment[]
}

/** A file on another server. Without a type, it has the type that the server returns. */
export type AttachmentSource = { url: string; name: string; contentType?: string | undefined }

/** `encoded` is base64 in lines, encoded once for all emails that have the attachment. */
export type EmailAttachment = { name: string; contentType: string; encoded: Buffer }

export type EmailItem = {
  content: EmailContent
  /** Identifies this delivery to the servers on its way, which may include it in reports. Letters, digits, - and _. */
  reference: string
  /** The value of a placeholder in the content, in the same character set. */
  referenceFor(placeholder: string): string
  to: string
  /** Including its angle brackets. */
  messageIdHeader: string
  /** The address that bounces go to; empty if they go nowhere. */
  envelopeFrom: string
  date: Date
  dkim: readonly DkimSigningKey[]
  /** Further recipients that no header names. The email's outcome is the one for `to`. */
  bcc?: readonly string[]
  /** The inbox provider of the recipient. Each one is throttled separately. */
  inboxProvider: string
  source: TrafficSource
}

export type DkimSigningKey = { domain: string; selector: string; algorithm: 'rsa' | 'ed25519'; privateKey: KeyObject }

/** The email itself contains something that no server could accept. */
export class InvalidEmail extends Error {}
