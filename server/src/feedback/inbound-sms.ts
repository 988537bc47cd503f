// What SMS providers report, in a form that is independent of the provider. The composition decides which provider it
// is.

export type SmsStatusReport = {
  /** The provider's own identifier of the SMS. */
  id: string
  /** `passed-on`: under way. `unknown`: the provider itself does not know. */
  state: 'passed-on' | 'delivered' | 'failed' | 'gone' | 'unknown'
  reason?: string
}

/** An inbound SMS, and the request that the channel recognized in it. */
export type IncomingSms = { from: string; text: string; optOut?: 'stop' | 'start' | 'help' }

export type TwilioRequest = { authToken: string; url: string; body: string; signature: string | undefined }
export type TwilioEvent =
  | { kind: 'receipt'; receipt: SmsStatusReport }
  | { kind: 'text'; text: IncomingSms }
  /** Signed, but of no interest here. */
  | { kind: 'other' }

/** Returns undefined when the request is not from Twilio. */
export type ReadTwilioWebhook = (request: TwilioRequest) => TwilioEvent | undefined
