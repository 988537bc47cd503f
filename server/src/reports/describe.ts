// Explains the outcome of a delivery, or why there is none, in words for people.

import { ownProperty } from '../lib/own-property.ts'
import { INTERRUPTED } from '../messages/deliver/batch.ts'
import { THROTTLED } from '../messages/deliver/throttle.ts'
import { ATTACHMENT_FAILED, ATTACHMENT_PENDING } from '../messages/email/attach-files.ts'
import { SUPPRESSED } from '../messages/email/prepare.ts'
import { BEYOND_WARM_UP } from '../messages/expand/insert-deliveries.ts'
import {
  CAPPED,
  DELETED,
  DOMAIN_INACTIVE,
  isGone,
  NO_ACTIVITY_TOKEN,
  NO_FROM_ADDRESS,
  NOT_CONFIGURED,
  NOT_SUPPORTED,
  UNSUBSCRIBED,
} from '../messages/reasons.ts'
import type { DeliveryView } from './reported-delivery.ts'

/** The reason why there is no delivery. */
export type Absence =
  | 'other_channel'
  | 'platform_not_chosen'
  | 'canceled'
  | 'not_expanded_yet'
  | 'created_later'
  | 'not_in_audience'

const STATES: Record<DeliveryView['state'], string> = {
  pending: 'It waits to be sent',
  sending: 'It is being sent at this moment',
  sent: 'The provider took it',
  failed: 'The provider refused it',
  skipped: 'It was decided not to send it',
  unknown: 'It was being sent, and may have arrived or not. It is not sent again by itself',
  expired: 'Its time was over before it could be sent',
  canceled: 'The message was canceled before it was sent',
}

/** Our own reasons. A provider's reason is shown as it is. */
const REASONS: Record<string, string> = {
  [UNSUBSCRIBED]: 'the subscription was not subscribed',
  [DELETED]: 'the subscription was deleted',
  [CAPPED]: 'the user had got as many messages as the frequency cap lets through',
  [NO_ACTIVITY_TOKEN]: 'the device has no token for this live activity',
  [INTERRUPTED]: 'the server broke off while it was being sent',
  [NOT_CONFIGURED]: 'the app has no credentials for the service that reaches it',
  [NOT_SUPPORTED]: 'the server does not speak to the service that reaches it',
  [SUPPRESSED]: 'the address is on the suppression list',
  [NO_FROM_ADDRESS]: 'neither the message nor the app says whom the mail is from',
  [DOMAIN_INACTIVE]: 'the domain that the mail is from is not an active sending domain of the app',
  [ATTACHMENT_FAILED]: 'an attachment could not be fetched from its address',
  [ATTACHMENT_PENDING]: 'an attachment was still being fetched',
  [BEYOND_WARM_UP]: 'all stages of the warm-up were full',
  hard_bounce: 'there is no such mailbox',
  soft_bounce: 'the server of the mailbox refused it',
  mailbox_full: 'the mailbox was full',
  blocked: 'the server of the mailbox takes nothing of the sender',
  slowed: 'the inbox provider asked for fewer mails at a time',
  no_test_user: 'the message is a test, and the user is no test user',
  discarded: 'what was due was given up after a restore',
  [THROTTLED]: 'its message goes to so many people in a minute',
}

/** Used where the state alone would be misleading. */
const SENTENCES: Record<string, string> = {
  'pending quiet_hours': 'It waits until the quiet hours are over.',
  'pending throttled': 'It waits for its turn: the message goes to so many people in a minute.',
  [`failed ${ATTACHMENT_FAILED}`]: 'It could not be made: an attachment could not be fetched, or is too large.',
  'expired quiet_hours': 'It was due in quiet hours, and lived no longer than they last.',
  'failed render_failed': 'It could not be made: its Liquid could not be rendered for this user.',
  'failed template_suspended':
    'It was not made: its content is suspended, because rendering it kept hitting the time limit.',
  'failed closed': 'Nobody knew whether it arrived, and somebody closed it.',
}

type DescribedDelivery = Pick<DeliveryView, 'state' | 'reason' | 'receivedAt' | 'bouncedAt' | 'openedAt'>

export function describeState(delivery: DescribedDelivery): string {
  const { state, reason } = delivery
  const whole = ownProperty(SENTENCES, `${state} ${reason}`)
  if (whole !== undefined) return whole
  if (reason !== null && isGone(reason)) return `The provider says that the address leads nowhere any more (${reason}).`
  const later = state === 'sent' ? describeFeedback(delivery) : ''
  // For a waiting delivery, the reason explains why the last attempt failed.
  const again = state === 'pending' && reason ? ' again' : ''
  const why = reason ? `: ${ownProperty(REASONS, reason) ?? reason}` : ''
  return `${STATES[state]}${later}${again}${why}.`
}

/** Describes the feedback that has arrived since. */
function describeFeedback({ receivedAt, bouncedAt, openedAt }: DescribedDelivery): string {
  if (receivedAt) return ', and the device told that it arrived'
  if (openedAt) return ', and it was opened'
  return bouncedAt ? ', and it came back later' : ''
}

const ABSENCES: Record<Absence, string> = {
  other_channel: 'It is of another channel than the message.',
  platform_not_chosen: 'The message was sent to other platforms.',
  canceled: 'The message was canceled before it was decided who gets it.',
  not_expanded_yet: 'It is not decided yet who gets the message.',
  created_later: 'The subscription was made after it was decided who gets the message.',
  not_in_audience: 'It was not in the audience when it was decided who gets the message.',
}

export function describeAbsence(absence: Absence, matchesNow: boolean): string {
  const now = matchesNow ? 'It would be in the audience now.' : 'It would not be in the audience now.'
  return absence === 'other_channel' || absence === 'platform_not_chosen' || absence === 'canceled'
    ? ABSENCES[absence]
    : `${ABSENCES[absence]} ${now}`
}
