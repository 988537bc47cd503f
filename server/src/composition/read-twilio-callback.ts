import { isFromTwilio, readTwilioCallback } from '../channels/sms/twilio-callback.ts'
import type { ReadTwilioWebhook } from '../feedback/inbound-sms.ts'

export const readTwilioWebhook: ReadTwilioWebhook = (request) =>
  isFromTwilio({ ...request, isForm: true })
    ? (readTwilioCallback(new URLSearchParams(request.body)) ?? { kind: 'other' })
    : undefined
