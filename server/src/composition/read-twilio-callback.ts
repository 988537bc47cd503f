import { isFromTwilio, readTwilioCallback } from '../channels/sms/twilio-callback.ts'
import type { ReadTwilio } from '../feedback/inbound-sms.ts'

export const readTwilio: ReadTwilio = (request) =>
  isFromTwilio({ ...request, isForm: true })
    ? (readTwilioCallback(new URLSearchParams(request.body)) ?? { kind: 'other' })
    : undefined
