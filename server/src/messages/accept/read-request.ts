// Step 1 of Create message: reads and checks everything that needs no lookup.

import { invalid } from '../../lib/errors.ts'
import type { CreateMessageBody } from '../schema.ts'
import { readKeys } from './idempotency.ts'
import { parseInstant } from './parse-time.ts'
import { readTargeting, type Targeting } from './read-targeting.ts'
import type { RequestKeys } from './submission.ts'

export type MessageRequest = RequestKeys & { body: CreateMessageBody; targeting: Targeting; sendAfter: Date }

export const readRequest = (body: CreateMessageBody, now: Date): MessageRequest => ({
  body,
  ...readKeys(body),
  targeting: readTargeting(body),
  sendAfter: readSendAfter(body, now),
})

/** A time in the past means now. */
function readSendAfter({ send_after }: CreateMessageBody, now: Date): Date {
  if (send_after === undefined || send_after === null) return now
  const instant = parseInstant(send_after)
  if (!instant)
    throw invalid('send_after is not understood; write it like 2030-09-24T14:00:00Z or 2030-09-24 14:00:00 GMT-0700')
  return instant < now ? now : instant
}
