// Mailgun signs the time and a token of each request, but not its content. Each token is therefore accepted only once,
// and only while it is recent.

import { createHmac } from 'node:crypto'
import type { ClassifyBounce } from '../ports.ts'
import { fieldsOf, parseJson, parseRefusal, textOf, timeOf } from './json.ts'
import {
  isMachine,
  isSame,
  notAuthentic,
  type RecipientEvent,
  type SourceConfig,
  type SourceReport,
  type SourceRequest,
} from './source.ts'

const WINDOW_MS = 15 * 60_000

export function readMailgun(
  { secrets }: SourceConfig<'mailgun'>,
  { body }: SourceRequest,
  now: Date,
  classify: ClassifyBounce,
): SourceReport {
  const call = fieldsOf(parseJson(body.toString('utf8')))
  const { timestamp, token, signature } = fieldsOf(call.signature)
  const [time, word, given] = [String(timestamp), textOf(token), textOf(signature)]
  if (word === undefined || given === undefined || !/^\d{1,12}$/.test(time)) throw notAuthentic()
  const expected = createHmac('sha256', secrets.signing_key).update(`${time}${word}`).digest('hex')
  if (!isSame(expected, given.toLowerCase())) throw notAuthentic()
  if (Math.abs(now.getTime() - Number(time) * 1_000) > WINDOW_MS) throw notAuthentic()

  const data = fieldsOf(call['event-data'])
  const news = readNews(data, classify)
  const headers = fieldsOf(fieldsOf(data.message).headers)
  const event = news && {
    id: textOf(data.id) ?? word,
    reference: textOf(fieldsOf(data['user-variables']).carillon_ref) ?? textOf(headers['x-carillon-ref']),
    messageId: textOf(headers['message-id']),
    at: timeOf(data.timestamp),
    recipients: [{ recipient: textOf(data.recipient), event: news }],
  }
  return { events: event ? [event] : [], once: `token ${word}` }
}

function readNews(data: Record<string, unknown>, classify: ClassifyBounce): RecipientEvent['event'] | undefined {
  const client = fieldsOf(data['client-info'])
  const isRobot =
    client['client-type'] === 'robot' || textOf(client.bot) !== undefined || isMachine(client['user-agent'])
  switch (data.event) {
    case 'delivered':
    case 'complained':
    case 'unsubscribed':
      return { kind: data.event }
    case 'opened':
    case 'clicked':
      return { kind: data.event, isMachine: isRobot }
    case 'failed':
    case 'bounced': {
      // A failure that is still being retried is not yet a bounce.
      if (data.event === 'failed' && data.severity === 'temporary') return undefined
      const status = fieldsOf(data['delivery-status'])
      const detail = textOf(status.message) || textOf(status.description)
      // Mailgun did not attempt delivery, because of an earlier event for this address.
      if (/^suppress-/.test(textOf(data.reason) ?? '')) return { kind: 'bounced', class: 'block', detail }
      const code = typeof status.code === 'number' ? { code: status.code } : {}
      const found = classify({ ...parseRefusal(detail, textOf(status['enhanced-code'])), ...code })
      return { kind: 'bounced', class: found === 'transient' ? 'soft' : found, detail }
    }
    default:
      return undefined
  }
}
