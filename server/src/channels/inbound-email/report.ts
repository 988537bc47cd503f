// Parses reports on email that we sent: delivery reports (RFC 3464, RFC 6533) and complaints (RFC 5965). This file only
// reads what a report says; the references in it decide which delivery it concerns.

import { headersOf, type MimeHeaders, type MimePart, parseHeaders, parseMimeParts } from './mime.ts'

export type ParsedRecipient = {
  /** The original and the final recipient, in lower case. */
  addresses: string[]
  /** `failed`, `delayed`, `delivered`, `relayed`, `expanded`. */
  action: string
  code?: number
  enhanced?: string
  text?: string
}

export type ParsedReport = {
  /** Texts of the returned message and of the report that may contain our reference. */
  clues: string[]
} & (
  | { kind: 'delivery'; recipients: ParsedRecipient[] }
  | { kind: 'complaint'; type: string }
  /** Neither kind of report: a reply by a person, or an automatic reply. */
  | { kind: 'other'; isAutoReply: boolean }
)

const MOST_RECIPIENTS = 100
const LONGEST_TEXT = 1_000

const STATUS = ['message/delivery-status', 'message/global-delivery-status']
const RETURNED = ['message/rfc822', 'text/rfc822-headers', 'message/global', 'message/global-headers']
const CLUES = ['return-path', 'list-unsubscribe', 'x-carillon-ref', 'original-mail-from']

export function parseReport(message: Buffer): ParsedReport {
  const { headers, parts } = parseMimeParts(message)
  const find = (types: readonly string[]): MimePart | undefined => parts.find(({ type }) => types.includes(type))
  const returned = find(RETURNED)
  const clues = returned ? cluesIn(headersOf(returned.text())) : []

  const complaint = find(['message/feedback-report'])
  if (complaint) {
    const fields = parseHeaders(complaint.text())
    const type = (fields.get('feedback-type')?.[0] ?? 'abuse').toLowerCase()
    return { kind: 'complaint', type, clues: [...cluesIn(fields), ...clues] }
  }
  const status = find(STATUS)
  if (status) return { kind: 'delivery', recipients: readRecipients(status.text()), clues }
  return { kind: 'other', isAutoReply: isAutoReply(headers), clues }
}

const cluesIn = (headers: MimeHeaders) => CLUES.flatMap((name) => [...(headers.get(name) ?? [])])

/** RFC 3834. `auto-generated` email is not a reply: some providers use it for reports on behalf of their users. */
const isAutoReply = (headers: MimeHeaders): boolean =>
  /^auto-(replied|notified)/i.test(headers.get('auto-submitted')?.[0] ?? '') || headers.has('x-autoreply')

/** The first group of fields is about the message, each of the others about one recipient. */
function readRecipients(text: string): ParsedRecipient[] {
  return text
    .trim()
    .split(/\r?\n[ \t]*\r?\n/)
    .slice(0, MOST_RECIPIENTS)
    .map(parseHeaders)
    .filter((fields) => fields.has('final-recipient') || fields.has('original-recipient'))
    .map(readRecipient)
}

function readRecipient(fields: MimeHeaders): ParsedRecipient {
  const addresses = ['original-recipient', 'final-recipient'].flatMap((name) => fields.get(name) ?? []).map(addressIn)
  const text = fields
    .get('diagnostic-code')?.[0]
    ?.replace(/^[\w-]+\s*;\s*/, '')
    .slice(0, LONGEST_TEXT)
  const code = /^\s*([245]\d\d)\b/.exec(text ?? '')?.[1]
  const status = /^[245]\.\d{1,3}\.\d{1,3}/.exec(fields.get('status')?.[0] ?? '')?.[0]
  // Some servers give only a generic status, and put the actual one into the diagnostic text.
  const said = /\b[245]\.\d{1,3}\.\d{1,3}\b/.exec(text ?? '')?.[0]
  const enhanced = status?.endsWith('.0.0') ? (said ?? status) : (status ?? said)
  return {
    addresses: [...new Set(addresses)],
    action: (fields.get('action')?.[0] ?? '').toLowerCase(),
    ...(code !== undefined && { code: Number(code) }),
    ...(enhanced !== undefined && { enhanced }),
    ...(text !== undefined && { text }),
  }
}

const addressIn = (field: string) =>
  field
    .replace(/^[^;]*;/, '')
    .replaceAll(/[<>]/g, '')
    .trim()
    .toLowerCase()
