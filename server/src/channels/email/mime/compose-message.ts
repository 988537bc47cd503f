// Writes an email as bytes (RFC 5322, 2045, 2046). Everything that recipients of the same content share is encoded
// once. The email for one of them consists of a few headers of its own, followed by the shared pieces with the
// recipient's references between them.

import { randomBytes } from 'node:crypto'
import { fillPieces, isPlaceholderName, type Pieces, splitAtPlaceholders } from '../../../lib/placeholders.ts'
import { type EmailAddress, parseEmailAddress } from '../address.ts'
import { type EmailAttachment, type EmailContent, type EmailItem, InvalidEmail } from '../message.ts'
import { attachmentHeaders } from './attachment-headers.ts'
import { formatHeader, formatMailboxHeader } from './headers.ts'
import { encodeQuotedPrintable } from './quoted-printable.ts'
import { toByteString, toWireText, type WireText } from './wire-format.ts'

export type PreparedMessage = {
  /** Shared headers, an empty line and the body. With their placeholders filled, they are a `WireText`. */
  pieces: Pieces
  /**
   * The attachments, which follow the body and are the same for all recipients. They are never copied, because they may
   * be large. DKIM canonicalization does not change them.
   */
  files: readonly Buffer[]
  /** Headers and body in DKIM's canonical form ("relaxed", RFC 6376, 3.4). */
  signedHeaders: ReadonlyMap<string, Pieces>
  signedBody: Pieces
  /** An address in a header requires SMTPUTF8. */
  isUtf8: boolean
}

export type ComposedMessage = {
  /** The headers of this recipient, each on one line. */
  own: readonly (readonly [name: string, value: string])[]
  referenceAt: (place: string) => string
  shared: PreparedMessage
}

const prepared = new WeakMap<EmailContent, PreparedMessage>()

/** Throws `InvalidEmail`. */
export function prepareMessage(content: EmailContent): PreparedMessage {
  const known = prepared.get(content)
  if (known) return known
  const made = prepare(content)
  prepared.set(content, made)
  return made
}

const OURS =
  /^(from|to|cc|bcc|sender|subject|date|message-id|reply-to|mime-version|content-.*|dkim-signature|return-path|received)$/i

function prepare({ from, replyTo, subject, html, text, headers, files: attached }: EmailContent): PreparedMessage {
  const sender = mustRead(from.address)
  const answers = replyTo === undefined ? undefined : readMailbox(replyTo)
  const names = headers.map(([name]) => name.toLowerCase())
  if (names.some((name, n) => OURS.test(name) || names.indexOf(name) !== n)) throw new InvalidEmail('header not valid')
  const { contentHeaders, body, files } = withFiles(bodyOf(text, html), attached)
  const lines = [
    formatMailboxHeader('From', from.name, sender.text),
    formatHeader('Subject', [subject]),
    ...(answers ? [formatMailboxHeader('Reply-To', answers.name, answers.address.text)] : []),
    ...headers.map(([name, pieces]) => formatHeader(name, pieces)),
    'MIME-Version: 1.0',
    ...contentHeaders,
  ]
  const head = splitAtPlaceholders(toByteString(`${lines.join('\r\n')}\r\n\r\n`))
  const pieces = chain(head, body)
  const whole = fillPieces(pieces, () => 'x')
  if (toWireText(whole) !== whole) throw new InvalidEmail('content not valid')
  return {
    pieces,
    files,
    signedHeaders: new Map(lines.map(relaxHeader)),
    signedBody: relaxBody(body, files.length === 0),
    isUtf8: sender.isUtf8 || answers?.address.isUtf8 === true,
  }
}

/** Callers that have parsed the recipient's address already pass it as `to`. Throws `InvalidEmail`. */
export function composeMessage(item: EmailItem, to = mustRead(item.to)): ComposedMessage {
  const { content, reference, messageIdHeader, date } = item
  // The reference becomes part of an SMTP command, where a line end would start another command.
  if (!/^[\w-]{0,70}$/.test(reference)) throw new InvalidEmail('reference not valid')
  if (!/^<[\w!#$%&'*+/=?^`{|}~.-]{1,180}@[\w.-]{1,253}>$/.test(messageIdHeader))
    throw new InvalidEmail('message id not valid')
  if (Number.isNaN(date.getTime())) throw new InvalidEmail('date not valid')
  const own = [
    ['To', `<${to.text}>`],
    ['Date', date.toUTCString().replace('GMT', '+0000')],
    ['Message-ID', messageIdHeader],
  ] as const
  return { own, referenceAt: (place) => checked(item.referenceFor(place)), shared: prepareMessage(content) }
}

function checked(reference: string): string {
  if (!/^[\w-]{1,70}$/.test(reference)) throw new InvalidEmail('reference not valid')
  return reference
}

/**
 * Only the head still has to be converted: the pieces were checked when they were prepared, and a reference contains no
 * dots or line ends.
 */
export function writeMessage({ own, referenceAt, shared }: ComposedMessage, signatures: string): WireText {
  const head = own.map(([name, value]) => `${name}: ${value}\r\n`).join('')
  return (toWireText(toByteString(signatures + head)) + fillPieces(shared.pieces, referenceAt)) as WireText
}

function mustRead(text: string): EmailAddress {
  const address = parseEmailAddress(text)
  if (!address) throw new InvalidEmail('address in a header not valid')
  return address
}

/** `a@example.com`, or `Somebody <a@example.com>`. */
function readMailbox(text: string): { name?: string; address: EmailAddress } {
  const [, name = '', address = text] = /^([^<>]*)<([^<>]+)>\s*$/.exec(text) ?? []
  return { name: name.trim().replace(/^"(.*)"$/, '$1'), address: mustRead(address.trim()) }
}

/** The body is ASCII. */
type EncodedBody = { contentHeaders: string[]; body: Pieces }

/** The body becomes the first part, and the files follow it. */
function withFiles(
  { contentHeaders, body }: EncodedBody,
  attached: readonly EmailAttachment[] = [],
): EncodedBody & { files: Buffer[] } {
  if (attached.length === 0) return { contentHeaders, body, files: [] }
  const boundary = newBoundary()
  const headOf = (headers: readonly string[]) => `--${boundary}\r\n${headers.join('\r\n')}\r\n\r\n`
  const files = attached.flatMap((file) => [Buffer.from(headOf(attachmentHeaders(file))), file.encoded])
  return {
    contentHeaders: [`Content-Type: multipart/mixed; boundary="${boundary}"`],
    body: chain([headOf(contentHeaders)], body),
    files: [...files, Buffer.from(`--${boundary}--\r\n`)],
  }
}

/** "=_" occurs neither in quoted-printable nor in base64, so no part can contain the boundary. */
const newBoundary = () => `=_${randomBytes(12).toString('hex')}`

/** If there are both forms, they become alternatives; a single one is used as it is. */
function bodyOf(text: Pieces, html: Pieces): EncodedBody {
  const parts = [
    { type: 'plain', pieces: text },
    { type: 'html', pieces: html },
  ].filter(({ pieces }) => pieces.join('') !== '' || pieces.length > 1)
  const headersOf = (type: string) => [
    `Content-Type: text/${type}; charset=utf-8`,
    'Content-Transfer-Encoding: quoted-printable',
  ]
  if (parts.length < 2) {
    const { type, pieces } = parts[0] ?? { type: 'plain', pieces: [''] }
    return { contentHeaders: headersOf(type), body: chain(encodePieces(pieces), [CRLF]) }
  }
  const boundary = newBoundary()
  const body = parts.reduce<Pieces>(
    (before, { type, pieces }) =>
      chain(
        chain(before, [`--${boundary}\r\n${headersOf(type).join('\r\n')}\r\n\r\n`]),
        chain(encodePieces(pieces), [CRLF]),
      ),
    [''],
  )
  return {
    contentHeaders: [`Content-Type: multipart/alternative; boundary="${boundary}"`],
    body: chain(body, [`--${boundary}--\r\n`]),
  }
}

const CRLF = '\r\n'
const SOFT_BREAK = '=\r\n'

/** Each reference gets a line of its own, so that the text around it is the same for all recipients. */
const encodePieces = (pieces: Pieces): Pieces =>
  pieces.map((piece, n) => {
    if (isPlaceholderName(n)) return piece
    const before = n > 0 ? SOFT_BREAK : ''
    const behind = n < pieces.length - 1 ? SOFT_BREAK : ''
    return before + encodeQuotedPrintable(piece) + behind
  })

/** Joins two lists: the last piece of the first and the first piece of the second become one. */
function chain(first: Pieces, other: Pieces): Pieces {
  const [begin = '', ...rest] = other
  return [...first.slice(0, -1), (first.at(-1) ?? '') + begin, ...rest]
}

function relaxHeader(line: string): [name: string, pieces: Pieces] {
  const colon = line.indexOf(':')
  const value = line
    .slice(colon + 1)
    .replaceAll('\r\n', '')
    .replaceAll(/[ \t]+/g, ' ')
    .trim()
  return [line.slice(0, colon).toLowerCase(), splitAtPlaceholders(value)]
}

/**
 * Every reference has other characters of its line before and after it, so each piece can be canonicalized by itself.
 */
function relaxBody(body: Pieces, isEnd: boolean): Pieces {
  return body.map((piece, n) => {
    if (isPlaceholderName(n)) return piece
    const relaxed = piece.replaceAll(/[ \t]+\r\n/g, '\r\n').replaceAll(/[ \t]+/g, ' ')
    if (n < body.length - 1 || !isEnd) return relaxed
    const ended = withoutEmptyEnd(relaxed)
    return ended === '\r\n' && body.length === 1 ? '' : ended
  })
}

/**
 * Removes empty lines from the end. A regular expression would start over at each line of every run of empty lines in
 * the text.
 */
function withoutEmptyEnd(text: string): string {
  let end = text.length
  while (text.endsWith('\r\n\r\n', end)) end -= 2
  return text.slice(0, end)
}
