// Makers for tests about mail that the engine sends.

import type { EmailContent } from '../src/channels/email/message.ts'
import type { AppId } from '../src/lib/ids.ts'
import { fillPieces } from '../src/lib/placeholders.ts'
import type { Db } from '../src/storage/db.ts'
import { sql } from '../src/storage/sql.ts'
import type { FakeSender } from './engine.ts'

/** What the sender was given, as each recipient would read it. */
export const mailsOf = ({ calls }: Pick<FakeSender, 'calls'>) =>
  calls.flatMap(({ outgoing }) => {
    if (outgoing.kind !== 'email') return []
    const { content, reference, token: to, ...envelope } = outgoing
    const headers = Object.fromEntries(
      content.headers.map(([name, pieces]) => [name, fillPieces(pieces, outgoing.referenceFor)]),
    )
    const text = fillPieces(content.text, outgoing.referenceFor)
    return [
      { ...envelope, to, reference, content, headers, html: fillPieces(content.html, outgoing.referenceFor), text },
    ]
  })
export type SentMail = ReturnType<typeof mailsOf>[number]
export type { EmailContent }

/** Counts by domain and inbox provider: `{ 'example.com gmail': { sent: 1, delivered: 1 } }`; zeros are left out. */
export async function emailCounts(db: Db, appId: AppId): Promise<Record<string, Record<string, number>>> {
  const found = await db.query<Record<string, string | number>>(sql`
    select domain, provider, sum(sent) as sent, sum(delivered) as delivered, sum(opened) as opened, sum(clicked) as clicked,
      sum(unique_opened) as unique_opened, sum(unique_clicked) as unique_clicked, sum(failed) as failed,
      sum(bounced) as bounced, sum(complained) as complained
    from email_rollups where app_id = ${appId} and unit = 'hour' group by domain, provider`)
  return Object.fromEntries(
    found.map(({ domain, provider, ...counts }) => [
      `${domain} ${provider}`,
      Object.fromEntries(
        Object.entries(counts).flatMap(([name, count]) => (Number(count) > 0 ? [[name, Number(count)]] : [])),
      ),
    ]),
  )
}

/** Of a message: `{ delivered: 1 }`. */
export async function factsBeside(db: Db, appId: AppId, id: string): Promise<Record<string, number>> {
  const found = await db.query<{ state: string; count: number }>(sql`
    select state, sum(count)::bigint as count from message_counts
    where app_id = ${appId} and message_id = ${id} and state <> all(array['pending', 'sending', 'sent', 'failed', 'skipped',
      'unknown', 'expired', 'canceled'])
    group by state having sum(count) <> 0`)
  return Object.fromEntries(found.map(({ state, count }) => [state, Number(count)]))
}
