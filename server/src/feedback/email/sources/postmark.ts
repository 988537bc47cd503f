// Postmark signs nothing: it authenticates with a username and password, or by a secret path that only it knows.

import { createHash } from 'node:crypto'
import type { ClassifyBounce, EmailBounceClass } from '../ports.ts'
import { fieldsOf, type JsonFields, parseJson, parseRefusal, textOf, timeOf } from './json.ts'
import {
  isMachine,
  isSame,
  notAuthentic,
  type RecipientEvent,
  type SourceConfig,
  type SourceReport,
  type SourceRequest,
} from './source.ts'

export function readPostmark(
  configured: SourceConfig<'postmark'>,
  request: SourceRequest,
  classify: ClassifyBounce,
): SourceReport {
  if (!isGenuine(configured, request)) throw notAuthentic()
  const fields = fieldsOf(parseJson(request.body.toString('utf8')))
  const news = readNews(fields, classify)
  if (!news) return { events: [] }
  return {
    events: [
      {
        // Postmark has no identifier that covers all kinds of event, but repeats an event byte for byte.
        id: createHash('sha256').update(request.body).digest('hex'),
        reference: textOf(fieldsOf(fields.Metadata).carillon_ref),
        at: timeOf(fields.DeliveredAt ?? fields.BouncedAt ?? fields.ReceivedAt ?? fields.ChangedAt),
        recipients: [{ recipient: textOf(fields.Email) ?? textOf(fields.Recipient), event: news }],
      },
    ],
  }
}

function isGenuine({ settings, secrets }: SourceConfig<'postmark'>, { header, pathSecret }: SourceRequest): boolean {
  if (pathSecret !== undefined) return secrets.path_secret !== null && isSame(pathSecret, secrets.path_secret)
  if (settings.username === null || secrets.password === null) return false
  const [, given = ''] = /^basic\s+(\S+)$/i.exec(header('authorization') ?? '') ?? []
  return isSame(Buffer.from(given, 'base64').toString('utf8'), `${settings.username}:${secrets.password}`)
}

/** Only the types that concern the mailbox; the others are auto-replies and special cases. */
const CLASSES = new Map<string, EmailBounceClass>(
  Object.entries({
    HardBounce: 'hard',
    BadEmailAddress: 'hard',
    SoftBounce: 'soft',
    DnsError: 'soft',
    Blocked: 'block',
    SpamNotification: 'block',
    DMARCPolicy: 'block',
    VirusNotification: 'block',
    ManuallyDeactivated: 'block',
  } as const),
)

function readNews(fields: JsonFields, classify: ClassifyBounce): RecipientEvent['event'] | undefined {
  const detail = textOf(fields.Details) ?? textOf(fields.Description)
  switch (fields.RecordType) {
    case 'Delivery':
      return { kind: 'delivered' }
    case 'Open':
      return { kind: 'opened', isMachine: isMachine(fields.UserAgent) }
    case 'Click':
      return { kind: 'clicked', isMachine: isMachine(fields.UserAgent) }
    case 'SpamComplaint':
      return { kind: 'complained' }
    case 'SubscriptionChange':
      return fields.SuppressSending === true && fields.SuppressionReason === 'ManualSuppression'
        ? { kind: 'unsubscribed' }
        : undefined
    case 'Bounce': {
      if (fields.Type === 'SpamComplaint') return { kind: 'complained' }
      if (fields.Type === 'Unsubscribe') return { kind: 'unsubscribed' }
      const told = CLASSES.get(textOf(fields.Type) ?? '')
      if (!told) return undefined
      // Postmark reports a full mailbox as an ordinary soft bounce.
      const isFull = told === 'soft' && classify(parseRefusal(detail)) === 'full'
      return { kind: 'bounced', class: isFull ? 'full' : told, detail }
    }
    default:
      return undefined
  }
}
