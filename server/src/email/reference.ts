// The reference identifies an email in what comes back about it: in the return path, in links, and in unsubscribe
// tokens. It names the app and the month, so that only one partition of one app is read, and it is signed, so that
// nobody can report on an email that they did not receive. The signature holds for one purpose only: proxies, browser
// histories and logs see the address of the pixel, which must not allow them to unsubscribe anybody.

import { createHmac, createSecretKey, hkdfSync, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { AppId } from '../lib/ids.ts'
import { sha256 } from '../lib/secrets.ts'

export type EmailReference = {
  appId: AppId
  /** The first day, in UTC, of the month in which the delivery was created. */
  month: Date
  /** Identifies the delivery, and is stored with it. */
  id: string
}

export type EmailDeliveryKey = { messageId: string; subscriptionId: string; runId: string }

/**
 * - `open`: the tracking pixel.
 * - `click`: a link that is followed.
 * - `view`: the email in the browser.
 * - `unsubscribe`: the page, the one-click request, unsubscribing by mail, and the token for apps.
 * - `preferences`: the preferences page.
 * - `report`: what mail servers and providers return with bounces, complaints and events.
 */
export type ReferencePurpose = 'open' | 'click' | 'view' | 'unsubscribe' | 'preferences' | 'report'

export type EmailReferences = {
  write(reference: EmailReference, purpose: ReferencePurpose): string
  /**
   * Ignores case, because mail servers change it. Returns undefined for anything that was not signed by us for one of
   * the purposes.
   */
  read(text: string, ...purposes: [ReferencePurpose, ...ReferencePurpose[]]): EmailReference | undefined
  /** Signs the target of a link. Without this, the server would be an open redirect. */
  sign(appId: AppId, text: string): string
  isSigned(appId: AppId, text: string, signature: string): boolean
}

const APP_BYTES = 16
const MONTH_BYTES = 2
const ID_BYTES = 8
const SIGNED_BYTES = APP_BYTES + MONTH_BYTES + ID_BYTES
const SIGNATURE_BYTES = 8
const LINK_SIGNATURE_BYTES = 12
const FIRST_YEAR = 2000

/** The first 64 bits of a hash. An app would need billions of emails in a month for a collision. */
export const emailIdOf = ({ messageId, subscriptionId, runId }: EmailDeliveryKey): string =>
  base32(sha256(`${messageId} ${subscriptionId} ${runId}`).subarray(0, ID_BYTES))

export const emailReferenceOf = (of: EmailDeliveryKey & { appId: AppId; expandAt: Date }): EmailReference => ({
  appId: of.appId,
  month: new Date(Date.UTC(of.expandAt.getUTCFullYear(), of.expandAt.getUTCMonth())),
  id: emailIdOf(of),
})

/** `secretKey` may list several keys: the first one signs, and signatures of any of them are accepted. */
export function createReferences(secretKey: string): EmailReferences {
  const keys = secretKey
    .split(',')
    .map((text) => text.trim())
    .filter(Boolean)
    // As key objects, because signing with a raw key takes Node.js five times as long.
    .map((text) => createSecretKey(Buffer.from(hkdfSync('sha256', text, '', 'email references', 32))))
  const [current] = keys
  if (!current) throw new Error('SECRET_KEY is empty')

  return {
    write({ appId, month, id }, purpose) {
      const named = Buffer.concat([appBytes(appId), monthBytes(month), fromBase32(id) as Buffer])
      return base32(Buffer.concat([named, signatureOf(current, purpose, named)]))
    },
    read(text, ...purposes) {
      const bytes = fromBase32(text)
      if (bytes?.length !== SIGNED_BYTES + SIGNATURE_BYTES) return undefined
      const named = bytes.subarray(0, SIGNED_BYTES)
      const given = bytes.subarray(SIGNED_BYTES)
      const isSignedFor = (purpose: ReferencePurpose) =>
        keys.some((key) => timingSafeEqual(signatureOf(key, purpose, named), given))
      if (!purposes.some(isSignedFor)) return undefined
      const months = named.readUInt16BE(APP_BYTES)
      return {
        appId: uuidOf(named.subarray(0, APP_BYTES)),
        month: new Date(Date.UTC(FIRST_YEAR, months)),
        id: base32(named.subarray(APP_BYTES + MONTH_BYTES)),
      }
    },
    sign: (appId, text) => linkSignatureOf(current, appId, text).toString('base64url'),
    isSigned(appId, text, signature) {
      const given = Buffer.from(signature, 'base64url')
      if (given.length !== LINK_SIGNATURE_BYTES || given.toString('base64url') !== signature) return false
      return keys.some((key) => timingSafeEqual(linkSignatureOf(key, appId, text), given))
    },
  }
}

/** The leading word separates the purposes from each other and from the signatures of links. */
const signatureOf = (key: KeyObject, purpose: ReferencePurpose, named: Buffer) =>
  createHmac('sha256', key).update(`${purpose} `).update(named).digest().subarray(0, SIGNATURE_BYTES)

const linkSignatureOf = (key: KeyObject, appId: AppId, text: string) =>
  createHmac('sha256', key).update(`link ${appId} ${text}`).digest().subarray(0, LINK_SIGNATURE_BYTES)

const appBytes = (appId: AppId) => Buffer.from(appId.replaceAll('-', ''), 'hex')

function monthBytes(time: Date): Buffer {
  const bytes = Buffer.alloc(MONTH_BYTES)
  bytes.writeUInt16BE((time.getUTCFullYear() - FIRST_YEAR) * 12 + time.getUTCMonth())
  return bytes
}

const uuidOf = (bytes: Buffer): AppId =>
  bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')

/** Base32 as in RFC 4648, in lower case and without padding: addresses, links and changes of case preserve it. */
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'
const VALUES = new Map([...ALPHABET].map((letter, value) => [letter, value]))

function base32(bytes: Uint8Array): string {
  let text = ''
  let held = 0
  let bits = 0
  for (const byte of bytes) {
    held = (held << 8) | byte
    for (bits += 8; bits >= 5; bits -= 5) text += ALPHABET[(held >> (bits - 5)) & 31]
    held &= (1 << bits) - 1
  }
  return bits === 0 ? text : text + ALPHABET[(held << (5 - bits)) & 31]
}

/** Returns undefined for characters outside the alphabet, and when the last one has bits beyond the last byte. */
function fromBase32(text: string): Buffer | undefined {
  const bytes: number[] = []
  let held = 0
  let bits = 0
  for (const letter of text.toLowerCase()) {
    const value = VALUES.get(letter)
    if (value === undefined) return undefined
    held = (held << 5) | value
    bits += 5
    if (bits < 8) continue
    bits -= 8
    bytes.push((held >> bits) & 255)
    held &= (1 << bits) - 1
  }
  return held === 0 && bits < 5 ? Buffer.from(bytes) : undefined
}
