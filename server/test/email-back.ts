// Makers for tests about what comes back of email: deliveries as sending leaves them, and what was made of their return.

import { createConnection, type Socket } from 'node:net'
import { createReferences, emailIdOf, emailReferenceOf, type ReferencePurpose } from '../src/email/reference.ts'
import { findSuppressed } from '../src/email/suppressions/store.ts'
import { newId } from '../src/lib/ids.ts'
import { NO_RUN } from '../src/messages/message.ts'
import { addMonths } from '../src/storage/partitions.ts'
import { sql } from '../src/storage/sql.ts'
import type { TestApp } from './app.ts'
import { anEmail, aUser } from './users.ts'

/** Of servers that `testApp()` starts. */
export const references = createReferences('the secret key of the tests')

type Named = Parameters<typeof emailReferenceOf>[0]

export const writeReference = (email: Named, purpose: ReferencePurpose) =>
  references.write(emailReferenceOf(email), purpose)

export const referencesOf = (email: Named): Record<ReferencePurpose, string> => ({
  open: writeReference(email, 'open'),
  click: writeReference(email, 'click'),
  view: writeReference(email, 'view'),
  unsubscribe: writeReference(email, 'unsubscribe'),
  preferences: writeReference(email, 'preferences'),
  report: writeReference(email, 'report'),
})

export type SentEmail = {
  appId: string
  message: { id: string }
  userId: string
  subscriptionId: string
  address: string
  /** Signed, by what each is for. */
  references: Record<ReferencePurpose, string>
  /** The Message-ID that it went out with. */
  messageIdHeader: string
}

type Fields = {
  at: Date
  content?: Record<string, unknown>
  properties?: Record<string, unknown>
  address?: string
  deliveredAt?: Date | null
  subscription?: Record<string, unknown>
}

/** An email that somebody was sent a while ago, unless told when. */
export async function aSentEmail(app: TestApp, fields: Fields): Promise<SentEmail> {
  const { at, address = anEmail(), content = {}, properties = {} } = fields
  const appId = app.tenant.id
  const user = await aUser(app, {
    properties,
    subscriptions: [{ type: 'Email', token: address, ...fields.subscription }],
  })
  const subscriptionId = user.subscriptionIds[0] as string
  const key = { messageId: newId(), subscriptionId, runId: NO_RUN }
  const whole = { isEmail: true, email_subject: 'Hello', email_body: '<p>Hello</p>', ...content }
  const deliveredAt = fields.deliveredAt === undefined ? new Date(at.getTime() - 60_000) : fields.deliveredAt
  await addMonths(app.db, 'deliveries', at, at)
  await app.db.query(sql`
    insert into messages (app_id, id, channel, lane, state, audience, content, options, queued_at, send_after, expand_at)
    values (${appId}, ${key.messageId}, 'email', 'bulk', 'sending', '{}', ${JSON.stringify(whole)}, '{"ttl":1,"priority":10}',
      ${at}, ${at}, ${at})`)
  await app.db.query(sql`
    insert into deliveries (app_id, expand_at, message_id, subscription_id, user_id, platform, line, state, due_at, expires_at,
      provider_ref, settled_at, sending_domain, inbox_provider, delivered_at)
    values (${appId}, ${at}, ${key.messageId}, ${subscriptionId}, ${user.id}, 'Email', 'bulk/email/0', 'sent', ${at}, ${at},
      ${emailIdOf(key)}, ${at}, 'news.example', 'gmail', ${deliveredAt})`)
  return {
    appId,
    message: { id: key.messageId },
    userId: user.id,
    subscriptionId,
    address,
    references: referencesOf({ appId, expandAt: at, ...key }),
    messageIdHeader: `<${emailIdOf(key)}.${at.toISOString().slice(2, 7).replace('-', '')}@news.example>`,
  }
}

/** Another email to the same address. */
export async function anotherTo(app: TestApp, { subscriptionId, address }: SentEmail, at: Date): Promise<SentEmail> {
  const other = await aSentEmail(app, { at })
  await app.db.query(sql`
    update deliveries set subscription_id = ${subscriptionId}
    where app_id = ${app.tenant.id} and message_id = ${other.message.id}`)
  return { ...other, subscriptionId, address }
}

/** What was counted of a message beside its states: `{ opens: 2, opened: 1 }`. */
export async function emailFactsOf(app: TestApp, { message }: SentEmail): Promise<Record<string, number>> {
  const found = await app.db.query<{ state: string; count: number }>(sql`
    select state, sum(count)::bigint as count from message_counts
    where app_id = ${app.tenant.id} and message_id = ${message.id} and state not like 'machine%'
    group by state having sum(count) <> 0`)
  return Object.fromEntries(found.map(({ state, count }) => [state, Number(count)]))
}

export async function notificationTypesOf(app: TestApp, { subscriptionId }: SentEmail) {
  const [row] = await app.db.query<{ notificationTypes: number | null }>(sql`
    select notification_types from subscriptions where app_id = ${app.tenant.id} and id = ${subscriptionId}`)
  return row?.notificationTypes
}

/** Why nothing is sent there; undefined when it is. */
export const suppressionOf = async (app: TestApp, { address }: SentEmail) =>
  (await findSuppressed(app.db, app.tenant.id, [address.toLowerCase()])).get(address.toLowerCase())

/** All that can be told of somebody after something came back. */
export const standingOf = async (app: TestApp, email: SentEmail) => ({
  facts: await emailFactsOf(app, email),
  types: await notificationTypesOf(app, email),
  suppressed: await suppressionOf(app, email),
})

/** Nothing came of it. */
export const UNTOUCHED = { facts: {}, types: null, suppressed: undefined }

export type Smtp = {
  /** Sends these lines at once, and answers with what was said to each. */
  say(...lines: string[]): Promise<string[]>
  /** What was said next, without anything being asked. */
  hear(): Promise<string>
  socket: Socket
  close(): void
}

/** A mail server that talks to ours. */
export async function connectSmtp(port: number): Promise<Smtp> {
  const socket = createConnection({ host: '127.0.0.1', port })
  socket.on('error', () => {})
  const chunks = socket.iterator() as AsyncIterator<Buffer>
  let rest = ''
  const hear = async (): Promise<string> => {
    for (;;) {
      // All lines of an answer but the last have a dash behind the code.
      const [answer] = /^(?:\d{3}-.*\r\n)*\d{3} .*\r\n/.exec(rest) ?? []
      if (answer !== undefined) {
        rest = rest.slice(answer.length)
        return answer.trimEnd()
      }
      const { value, done } = await chunks.next()
      if (done) return ''
      rest += value.toString()
    }
  }
  await hear()
  return {
    async say(...lines) {
      socket.write(lines.map((line) => `${line}\r\n`).join(''))
      const answers: string[] = []
      for (const _ of lines) answers.push(await hear())
      return answers
    },
    hear,
    socket,
    close: () => socket.destroy(),
  }
}

/** Bring a mail; answers what was said to its last recipient, or to the whole of it. */
export async function bringMail(app: TestApp, to: string | string[], message: string, from = ''): Promise<string> {
  const smtp = await connectSmtp(app.mailPort as number)
  try {
    const list = Array.isArray(to) ? to : [to]
    const recipients = list.map((address) => `RCPT TO:<${address}>`)
    const answers = await smtp.say('EHLO mx.example.net', `MAIL FROM:<${from}>`, ...recipients)
    if (!answers.at(-1)?.startsWith('250')) return answers.at(-1) ?? ''
    await smtp.say('DATA')
    smtp.socket.write(`${message.replaceAll(/\r?\n/g, '\r\n').replaceAll(/^\./gm, '..')}\r\n.\r\n`)
    return await smtp.hear()
  } finally {
    smtp.close()
  }
}
