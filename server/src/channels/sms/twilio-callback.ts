// Reads Twilio's callbacks: reports about SMS that it accepted, and incoming SMS.

import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { ownProperty } from '../../lib/own-property.ts'
import type { InboundSms, SmsReceipt } from './message.ts'
import { type OptOut, readOptOut } from './opt-out.ts'
import { judgeTwilioCode } from './twilio-errors.ts'

export type TwilioCallback = { kind: 'receipt'; receipt: SmsReceipt } | { kind: 'text'; text: InboundSms }

const STATES: Record<string, SmsReceipt['state']> = {
  accepted: 'passed-on',
  scheduled: 'passed-on',
  queued: 'passed-on',
  sending: 'passed-on',
  sent: 'passed-on',
  delivered: 'delivered',
  read: 'delivered',
  undelivered: 'failed',
  failed: 'failed',
  canceled: 'failed',
}

/** Returns undefined for anything else. The signature must have been checked before. */
export function readTwilioCallback(form: URLSearchParams): TwilioCallback | undefined {
  const id = form.get('MessageSid') ?? form.get('SmsSid') ?? ''
  const status = form.get('MessageStatus') ?? form.get('SmsStatus') ?? ''
  if (id === '') return undefined
  if (form.has('Body') && (status === 'received' || status === '')) return { kind: 'text', text: readText(form, id) }
  const state = ownProperty(STATES, status)
  if (!state) return undefined
  if (state !== 'failed') return { kind: 'receipt', receipt: { id, state } }
  const { kind, reason = status } = judgeTwilioCode(form.get('ErrorCode')) ?? {}
  return { kind: 'receipt', receipt: { id, state: kind === 'gone' ? 'gone' : 'failed', reason } }
}

function readText(form: URLSearchParams, id: string): InboundSms {
  const text = form.get('Body') ?? ''
  // If Twilio handles opt-outs itself, it says which request it recognized; the customer can choose the keywords there.
  const told = form.get('OptOutType')?.toLowerCase()
  const optOut: OptOut | undefined = told === 'stop' || told === 'start' || told === 'help' ? told : readOptOut(text)
  return { id, from: form.get('From') ?? '', to: form.get('To') ?? '', text, ...(optOut && { optOut }) }
}

export type SignedCallback = {
  /** The account's token, even if an API key is used for sending. */
  authToken: string
  /** The complete URL that Twilio was told to call, including its query. */
  url: string
  /** The body as received, before any parsing. */
  body: string
  isForm: boolean
  /** The header X-Twilio-Signature. */
  signature: string | undefined
}

export function isFromTwilio({ authToken, url, body, isForm, signature }: SignedCallback): boolean {
  const parsed = URL.parse(url)
  if (!parsed || signature === undefined) return false
  if (!isForm && !isEqual(parsed.searchParams.get('bodySHA256') ?? '', createHash('sha256').update(body).digest('hex')))
    return false
  const fields = isForm ? signedFields(new URLSearchParams(body)) : ''
  // With and without the port: Twilio's own servers are inconsistent about it.
  return spellings(url, parsed).some((spelling) => {
    const expected = createHmac('sha1', authToken)
      .update(spelling + fields)
      .digest('base64')
    return isEqual(signature, expected)
  })
}

/** Names are sorted by code units, and so are the distinct values of each name. */
function signedFields(form: URLSearchParams): string {
  const names = [...new Set(form.keys())].sort()
  return names.flatMap((name) => [...new Set(form.getAll(name))].sort().map((value) => name + value)).join('')
}

function spellings(url: string, { protocol, username, host, hostname, port }: URL): string[] {
  const start = /^[^/]+\/\/[^/?#]*/.exec(url)?.[0] ?? ''
  const rest = url.slice(start.length)
  if (username !== '') return [url]
  const standard = protocol === 'https:' ? '443' : '80'
  const without = `${protocol}//${hostname}${rest}`
  const withPort = `${protocol}//${hostname}:${port || standard}${rest}`
  return [...new Set([url, `${protocol}//${host}${rest}`, without, withPort])]
}

function isEqual(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}
