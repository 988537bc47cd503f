// Explains in words why an app, or one of its providers, sends nothing at the moment.

import { pushFactsOf } from '../channels/push/catalog.ts'
import { isEmailPaused } from '../email/pause.ts'
import type { AppId } from '../lib/ids.ts'
import { findPauses, type ProviderPause } from '../messages/deliver/provider-pause-store.ts'
import type { HoldReason, SendingHold } from '../sending/hold.ts'
import { readSending } from '../sending/read.ts'
import type { ReportsContext } from './context.ts'

const REASONS: Record<HoldReason, string> = {
  restored: 'the database was restored or copied, and an operator has to say whether what is due is sent or given up',
  server_paused: 'an operator paused the sending of all apps',
  paused: 'somebody paused the sending of this app',
  disabled: 'the app has sent more than its application message limit',
}

const EMAIL_PAUSED = 'No email of this app is sent: too many people complained about it. It goes on when it is resumed.'

export async function findHolds({ db, now }: ReportsContext, appId: AppId): Promise<string[]> {
  const at = now()
  const { hold } = await readSending(db, appId, at)
  const pauses = await findPauses(db, appId, at)
  const isPaused = await isEmailPaused(db, appId)
  return [...(hold ? [describeHold(hold)] : []), ...(isPaused ? [EMAIL_PAUSED] : []), ...pauses.map(describePause)]
}

export function describeHold({ reason, since, until }: SendingHold): string {
  const end = until ? ` It ends by itself about ${until.toISOString()}.` : ''
  return `Nothing is sent since ${since.toISOString()}: ${REASONS[reason]}.${end}`
}

function subjectFor(provider: ProviderPause['provider']): string {
  if (provider === 'email') return 'The mail server'
  return provider === 'sms' ? 'The SMS provider' : pushFactsOf(provider).vendor
}

/** The server tries again when the pause ends, and at once when the credentials change. */
function describePause({ provider, reason, isMisconfigured, since, until }: ProviderPause): string {
  const does = isMisconfigured ? 'refuses the credentials of the app' : 'takes nothing of the app'
  return `${subjectFor(provider)} ${does} since ${since.toISOString()}: ${reason}. It is asked again at ${until.toISOString()}.`
}
