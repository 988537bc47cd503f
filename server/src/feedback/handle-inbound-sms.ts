// People answer texts with one word to hear no more, or to hear again. That is done at once.

import { bareWord, type SmsSettings } from '../apps/sms/read.ts'
import type { Clock } from '../lib/clock.ts'
import type { AppId } from '../lib/ids.ts'
import { insertDeliveryEvents } from '../messages/feedback/delivery-event-store.ts'
import type { Db } from '../storage/db.ts'
import type { ChangeUsers } from '../users/change.ts'
import { setSmsOptOut } from '../users/subscriptions/opt-out.ts'
import type { IncomingSms } from './inbound-sms.ts'

type SmsKeywords = Pick<SmsSettings, 'opt_out_words' | 'opt_in_words'>

/** To stop goes before everything else, also where the app's own words contradict those of the carriers. */
function readOptRequest({ text, optOut }: IncomingSms, words: SmsKeywords): 'stop' | 'start' | undefined {
  const word = bareWord(text)
  if (optOut === 'stop' || words.opt_out_words.includes(word)) return 'stop'
  return optOut === 'start' || words.opt_in_words.includes(word) ? 'start' : undefined
}

/** What comes through here is known to come from the app's provider. */
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
  // Told each time that somebody says so: a provider that does not hear our answer says it again.
  await insertDeliveryEvents(db, appId, [
    { kind: 'unsubscribed', at: clock.now(), messageId: null, ...found, platform: 'SMS', reason: 'texted to stop' },
  ])
}
