// Amazon SES reports through SNS, which signs each message with a certificate that it serves only from its own host.

import { type KeyObject, verify, X509Certificate } from 'node:crypto'
import type { Clock } from '../../../lib/clock.ts'
import { unavailable } from '../../../lib/errors.ts'
import { ownProperty } from '../../../lib/own-property.ts'
import type { ClassifyBounce, EmailBounceClass, FetchPage } from '../ports.ts'
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

/** SNS gives up within hours. The receipts of older messages would be deleted, so a replay would not be recognized. */
const OLDEST_MS = 7 * 86_400_000
const HOST = /^sns\.[a-z0-9-]{1,40}\.amazonaws\.com(\.cn)?$/

/** Whether the address belongs to SNS itself, over TLS, on the default port. */
function isOfSns(text: string): boolean {
  const url = URL.parse(text)
  return (
    url?.protocol === 'https:' &&
    HOST.test(url.hostname) &&
    url.port === '' &&
    url.username === '' &&
    url.password === ''
  )
}

export type FindCertificate = (url: string) => Promise<KeyObject | undefined>

const KEPT_MS = 86_400_000
const MOST_KEPT = 50

/** Certificates are cached for a day; only a few exist. */
export function createCertificates({ clock, fetchPage }: { clock: Clock; fetchPage: FetchPage }): FindCertificate {
  const kept = new Map<string, { key: KeyObject; until: number }>()
  return async (url) => {
    if (!isOfSns(url) || !/^\/[\w./-]+\.pem$/.test(new URL(url).pathname) || new URL(url).search !== '')
      return undefined
    const now = clock.now()
    const known = kept.get(url)
    if (known && known.until > now.getTime()) return known.key
    const page = await fetchPage(url)
    if (!page) throw unavailable()
    const certificate = readCertificate(page)
    if (!certificate || now < new Date(certificate.validFrom) || now > new Date(certificate.validTo)) return undefined
    if (kept.size >= MOST_KEPT) kept.clear()
    kept.set(url, { key: certificate.publicKey, until: now.getTime() + KEPT_MS })
    return certificate.publicKey
  }
}

function readCertificate(pem: Buffer): X509Certificate | undefined {
  try {
    return new X509Certificate(pem)
  } catch {
    return undefined
  }
}

const SIGNED_FIELDS = new Map(
  Object.entries({
    Notification: ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type'],
    SubscriptionConfirmation: ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'],
    UnsubscribeConfirmation: ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'],
  }),
)
const ALGORITHMS = new Map([
  ['1', 'sha1'],
  ['2', 'sha256'],
])

async function isGenuine(message: JsonFields, findCertificate: FindCertificate): Promise<boolean> {
  const names = SIGNED_FIELDS.get(textOf(message.Type) ?? '')
  const algorithm = ALGORITHMS.get(textOf(message.SignatureVersion) ?? '')
  const [signature, url] = [textOf(message.Signature), textOf(message.SigningCertURL)]
  if (!names || !algorithm || signature === undefined || url === undefined) return false
  const key = await findCertificate(url)
  if (key?.asymmetricKeyType !== 'rsa') return false
  const lines = names
    .filter((name) => typeof ownProperty(message, name) === 'string')
    .map((name) => `${name}\n${ownProperty(message, name)}\n`)
  return verify(algorithm, Buffer.from(lines.join('')), key, Buffer.from(signature, 'base64'))
}

type Ports = { now: Date; classify: ClassifyBounce; findCertificate: FindCertificate; fetchPage: FetchPage }

export async function readSes(
  { settings }: SourceConfig<'ses'>,
  { body }: SourceRequest,
  ports: Ports,
): Promise<SourceReport> {
  const message = fieldsOf(parseJson(body.toString('utf8')))
  const [id, at] = [textOf(message.MessageId), timeOf(message.Timestamp)]
  // Checked first, so that nothing is fetched on behalf of a topic that is not the app's.
  if (message.TopicArn !== settings.topic_arn || id === undefined || !at) throw notAuthentic()
  if (!(await isGenuine(message, ports.findCertificate))) throw notAuthentic()
  if (ports.now.getTime() - at.getTime() > OLDEST_MS) throw notAuthentic()
  if (message.Type === 'SubscriptionConfirmation') await confirm(textOf(message.SubscribeURL) ?? '', ports.fetchPage)
  const event =
    message.Type === 'Notification' ? readEvent(id, textOf(message.Message) ?? '', ports.classify) : undefined
  return { events: event ? [event] : [], once: `message ${id}` }
}

/** SNS asks whether the topic may send here. Fetching the address that it names confirms the subscription. */
async function confirm(url: string, fetchPage: FetchPage): Promise<void> {
  if (!isOfSns(url)) throw notAuthentic()
  if (!(await fetchPage(url))) throw unavailable()
}

function readEvent(id: string, text: string, classify: ClassifyBounce): SourceEvent | undefined {
  const said = fieldsOf(parseJson(text))
  const kind = textOf(said.eventType) ?? textOf(said.notificationType) ?? ''
  const detail = fieldsOf(ownProperty(said, kind.toLowerCase()))
  const told = recipientsOf(detail).flatMap((it): RecipientEvent[] => {
    const news = readNews(kind, detail, it, classify)
    return news ? [{ recipient: textOf(it.emailAddress), event: news }] : []
  })
  if (told.length === 0) return undefined
  const mail = fieldsOf(said.mail)
  const header = (name: string) =>
    listOf(mail.headers)
      .map(fieldsOf)
      .filter((it) => textOf(it.name)?.toLowerCase() === name)
      .map((it) => textOf(it.value))[0]
  return {
    id,
    reference: header('x-carillon-ref') ?? textOf(listOf(fieldsOf(mail.tags).carillon_ref)[0]),
    messageId: header('message-id') ?? textOf(fieldsOf(mail.commonHeaders).messageId),
    at: timeOf(detail.timestamp) ?? timeOf(mail.timestamp),
    recipients: told,
  }
}

/** One notification may cover a mail and its copies. Returns one nameless recipient when nobody is named. */
function recipientsOf(detail: JsonFields): JsonFields[] {
  const named = [
    ...listOf(detail.bouncedRecipients),
    ...listOf(detail.complainedRecipients),
    ...listOf(detail.recipients),
  ].map((it) => (textOf(it) === undefined ? fieldsOf(it) : { emailAddress: it }))
  return named.length > 0 ? named : [{}]
}

function readNews(
  kind: string,
  detail: JsonFields,
  recipient: JsonFields,
  classify: ClassifyBounce,
): RecipientEvent['event'] | undefined {
  switch (kind) {
    case 'Delivery':
      return { kind: 'delivered' }
    case 'Open':
      return { kind: 'opened', isMachine: isMachine(detail.userAgent) }
    case 'Click':
      return { kind: 'clicked', isMachine: isMachine(detail.userAgent) }
    case 'Complaint':
      return detail.complaintFeedbackType === 'not-spam' ? undefined : { kind: 'complained' }
    case 'Subscription':
      return { kind: 'unsubscribed' }
    case 'Bounce':
      return readBounce(detail, recipient, classify)
    default:
      return undefined
  }
}

/** Prefers the receiving server's answer when SES includes it, and falls back to SES's own classification. */
function readBounce(detail: JsonFields, recipient: JsonFields, classify: ClassifyBounce): RecipientEvent['event'] {
  const [status, diagnostic] = [textOf(recipient.status), textOf(recipient.diagnosticCode)]
  const found = diagnostic === undefined ? undefined : classify(parseRefusal(diagnostic, status))
  const kind = found === undefined || found === 'transient' ? classOf(detail) : found
  return { kind: 'bounced', class: kind, detail: diagnostic }
}

function classOf({ bounceType, bounceSubType }: JsonFields): EmailBounceClass {
  if (bounceType === 'Permanent') return 'hard'
  if (bounceSubType === 'MailboxFull') return 'full'
  if (bounceSubType === 'ContentRejected' || bounceSubType === 'AttachmentRejected') return 'block'
  return 'soft'
}
