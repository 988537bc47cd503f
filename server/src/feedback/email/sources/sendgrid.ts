// SendGrid signs the time and the whole body with its own key; the app stores the public half.

import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import type { ClassifyBounce } from '../ports.ts'
import { fieldsOf, type JsonFields, listOf, parseJson, parseRefusal, textOf, timeOf } from './json.ts'
import {
  isMachine,
  notAuthentic,
  type RecipientEvent,
  type SourceConfig,
  type SourceEvent,
  type SourceReport,
  type SourceRequest,
} from './source.ts'

/** SendGrid retries for a day. Within that time, duplicates are recognized by their id. */
const OLDEST_MS = 25 * 3_600_000
const NEWEST_MS = 5 * 60_000

/** Reads the key as SendGrid displays it: base64 of a P-256 key. Returns undefined for anything else. */
export function readPublicKey(text: string): KeyObject | undefined {
  try {
    const key = createPublicKey({ key: Buffer.from(text, 'base64'), format: 'der', type: 'spki' })
    return key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? key : undefined
  } catch {
    return undefined
  }
}

export function readSendgrid(
  { settings }: SourceConfig<'sendgrid'>,
  { body, header }: SourceRequest,
  now: Date,
  classify: ClassifyBounce,
): SourceReport {
  const signature = header('x-twilio-email-event-webhook-signature')
  const time = header('x-twilio-email-event-webhook-timestamp')
  const key = readPublicKey(settings.public_key)
  if (!key || !signature || !time || !/^\d{1,12}$/.test(time)) throw notAuthentic()
  const signed = Buffer.concat([Buffer.from(time), body])
  if (!verify('sha256', signed, key, Buffer.from(signature, 'base64'))) throw notAuthentic()
  const ageMs = now.getTime() - Number(time) * 1_000
  if (ageMs > OLDEST_MS || ageMs < -NEWEST_MS) throw notAuthentic()

  const events = listOf(parseJson(body.toString('utf8'))).flatMap((entry): SourceEvent[] => {
    const fields = fieldsOf(entry)
    const news = readNews(fields, classify)
    const id = textOf(fields.sg_event_id)
    if (!news || id === undefined) return []
    return [
      {
        id,
        reference: textOf(fields.carillon_ref) ?? textOf(fieldsOf(fields.unique_args).carillon_ref),
        messageId: textOf(fields['smtp-id']),
        at: timeOf(fields.timestamp),
        recipients: [{ recipient: textOf(fields.email), event: news }],
      },
    ]
  })
  return { events }
}

function readNews(fields: JsonFields, classify: ClassifyBounce): RecipientEvent['event'] | undefined {
  const detail = textOf(fields.reason)
  switch (fields.event) {
    case 'delivered':
      return { kind: 'delivered' }
    case 'open':
      return { kind: 'opened', isMachine: fields.sg_machine_open === true || isMachine(fields.useragent) }
    case 'click':
      return { kind: 'clicked', isMachine: isMachine(fields.useragent) }
    case 'spamreport':
      return { kind: 'complained' }
    case 'unsubscribe':
    case 'group_unsubscribe':
      return { kind: 'unsubscribed' }
    case 'dropped':
      return { kind: 'bounced', class: /bounced address|invalid/i.test(detail ?? '') ? 'hard' : 'block', detail }
    case 'bounce': {
      if (fields.type === 'blocked') return { kind: 'bounced', class: 'block', detail }
      const found = classify(parseRefusal(detail, textOf(fields.status)))
      return { kind: 'bounced', class: found === 'transient' ? 'soft' : found, detail }
    }
    default:
      return undefined
  }
}
