// DKIM signatures (RFC 6376), relaxed/relaxed, with RSA or Ed25519 (RFC 8463).

import { createHash, hash, sign as signBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { fillPieces } from '../../../lib/placeholders.ts'
import { type DkimSigningKey, InvalidEmail } from '../message.ts'
import type { ComposedMessage } from './compose-message.ts'

/** With a callback, Node signs in its thread pool: an RSA signature takes milliseconds. */
const sign = promisify(signBytes)

const SIGNED = [
  'from',
  'to',
  'subject',
  'date',
  'message-id',
  'reply-to',
  'mime-version',
  'content-type',
  'list-unsubscribe',
  'list-unsubscribe-post',
  'feedback-id',
]

/** Returns the headers to put before the email, one for each key. */
export async function signWithDkim(
  mail: ComposedMessage,
  keys: readonly DkimSigningKey[],
  date: Date,
): Promise<string> {
  const { own, referenceAt, shared } = mail
  const bodyHash = hashOf(fillPieces(shared.signedBody, referenceAt), shared.files)
  const headers = new Map(shared.signedHeaders)
  for (const [name, value] of own) headers.set(name.toLowerCase(), [value.replaceAll(/[ \t]+/g, ' ')])
  const names = SIGNED.filter((name) => headers.has(name))
  const signed = names.map((name) => `${name}:${fillPieces(headers.get(name) ?? [], referenceAt)}\r\n`).join('')
  // From is listed once more than it occurs, so that adding a second From on the way breaks the signature.
  const tags = [
    'c=relaxed/relaxed',
    `t=${Math.floor(date.getTime() / 1000)}`,
    `h=from:${names.join(':')}`,
    `bh=${bodyHash}`,
  ]
  const signatures = await Promise.all(keys.map((key) => signatureOf(key, signed, tags)))
  return signatures.join('')
}

function hashOf(body: string, files: readonly Buffer[]): string {
  if (files.length === 0) return hash('sha256', body, 'base64')
  const all = createHash('sha256').update(body)
  for (const piece of files) all.update(piece)
  return all.digest('base64')
}

const NAME = /^[a-z0-9_.-]{1,253}$/i

async function signatureOf(
  { domain, selector, algorithm, privateKey }: DkimSigningKey,
  signed: string,
  tags: readonly string[],
): Promise<string> {
  if (!NAME.test(domain) || !NAME.test(selector) || privateKey.asymmetricKeyType !== algorithm)
    throw new InvalidEmail('signing key not valid')
  const all = ['v=1', `a=${algorithm}-sha256`, `d=${domain}`, `s=${selector}`, ...tags, 'b=']
  // In the signed text, folding white space becomes one space.
  const input = Buffer.from(`${signed}dkim-signature:${all.join('; ')}`)
  const signature = await (algorithm === 'rsa'
    ? sign('sha256', input, privateKey)
    : sign(null, hash('sha256', input, 'buffer'), privateKey))
  const folded = signature.toString('base64').replaceAll(/.{72}(?=.)/g, '$&\r\n ')
  return `DKIM-Signature: ${all.join(';\r\n ')}${folded}\r\n`
}
