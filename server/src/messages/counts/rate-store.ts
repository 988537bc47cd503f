// SQL on the usual outcomes of an app's messages, which dry runs use for their simulation.

import type { AppId } from '../../lib/ids.ts'
import type { Db } from '../../storage/db.ts'
import { sql } from '../../storage/sql.ts'

export type ChannelFactCount = { channel: 'push' | 'email' | 'sms'; fact: string; count: number }

/** Sent deliveries and facts of the messages that were queued in this period. */
export const countByChannel = (db: Db, appId: AppId, { after, upTo }: { after: Date; upTo: Date }) =>
  db.query<ChannelFactCount>(
    sql`
    select m.channel, c.state as fact, sum(c.count) as count
    from messages m join message_counts c on c.app_id = ${appId} and c.message_id = m.id
    where m.app_id = ${appId} and m.queued_at > ${after} and m.queued_at <= ${upTo}
      and c.state in ('sent', 'received', 'delivered', 'provider_successful', 'opened', 'clicked')
    group by m.channel, c.state`,
    { prepare: false },
  )
