// Reports deliveries with unknown outcomes by a notice to the administrators and an event, once per message, with their
// number. The report is delayed after the first of them: a broken connection or a killed server leaves many at once,
// and a worker that was taken for dead may still write its outcomes.

import type { AppId } from '../../lib/ids.ts'
import type { JobRun, NewJob } from '../../queue/job.ts'
import { notifyAdministrators } from '../../sending/notify-administrators.ts'
import type { Db } from '../../storage/db.ts'
import type { CountedDelivery } from '../deliver/store.ts'
import type { Engine } from '../engine/types.ts'
import { insertUnknownEvent } from '../feedback/delivery-event-store.ts'
import { REPORT_UNKNOWN } from '../jobs.ts'
import type { MessageId } from '../message.ts'
import { markUnknownsReported } from './unknown-store.ts'

const REPORT_DELAY_MS = 5 * 60_000

/** Call it in the transaction that ends the deliveries. */
export async function scheduleUnknownReport(
  queue: Engine['queue'],
  db: Db,
  appId: AppId,
  ended: readonly Pick<CountedDelivery, 'messageId' | 'state'>[],
  now: Date,
): Promise<void> {
  const ids = new Set(ended.filter(({ state }) => state === 'unknown').map(({ messageId }) => messageId))
  const runAt = new Date(now.getTime() + REPORT_DELAY_MS)
  await queue.enqueue(
    db,
    [...ids].map((id: MessageId): NewJob => ({ appId, name: REPORT_UNKNOWN, key: id, runAt })),
  )
}

export const reportUnknown =
  ({ db, clock }: Pick<Engine, 'db' | 'clock'>) =>
  async (work: JobRun) => {
    const { appId, key: id } = work.job
    const now = clock.now()
    await db.transaction(async (db) => {
      if (!(await work.isStillHeld(db))) return
      const told = await markUnknownsReported(db, appId, id, now)
      if (!told) return
      const { name, channel, count } = told
      const resend = `POST /apps/${appId}/messages/${id}/unknowns/resend`
      await notifyAdministrators(
        db,
        appId,
        'message.unknown',
        { message_id: id, message_name: name, channel, count, resend },
        now,
      )
      await insertUnknownEvent(db, appId, { messageId: id, count, at: now })
    })
  }
