// Replies by SMS that consist of one keyword and stop or resume messages. They take effect immediately.

import { bareWord, type SmsSettings } from '../apps/sms/read.ts'
import type { Clock } from '../lib/clock.ts'
import type { AppId } from '../lib/ids.ts'
import { insertDeliveryEvents } from '../messages/feedback/delivery-event-store.ts'
import type { Db } from '../storage/db.ts'
import type { ChangeUsers } from '../users/change.ts'
import { setSmsOptOut } from '../users/subscriptions/opt-out.ts'
import type { IncomingSms } from './inbound-sms.ts'

type SmsKeywords = Pick<SmsSettings, 'opt_out_words' | 'opt_in_words'>

/** An opt-out takes precedence, even when the app's keywords contradict those of the carriers. */
function readOptRequest({ text, optOut }: IncomingSms, words: SmsKeywords): 'stop' | 'start' | undefined {
  const word = bareWord(text)
  if (optOut === 'stop' || words.opt_out_words.includes(word)) return 'stop'
  return optOut === 'start' || words.opt_in_words.includes(word) ? 'start' : undefined
}

/** The caller has verified that the SMS comes from the app's provider. */
export async function handleInboundSms(
  { db, clock, change }: { db: Db; clock: Clock; change: ChangeUsers },
  appId: AppId,
  words: SmsKeywords,
  text: IncomingSms,
): Promise<void> {
  const wish = readOptRequest(text, words)
  if (!wish) return
  const found = await setSmsOptOut(change, appId, text.from, wish === 'stop')
  if (!found || wish === 'start') return
  // Inserted for each such SMS, so a provider that misses the answer and retries causes a duplicate event.
  await insertDeliveryEvents(db, appId, [
    { kind: 'unsubscribed', at: clock.now(), messageId: null, ...found, platform: 'SMS', reason: 'texted to stop' },
  ])
}
