// What providers of texts tell us, whatever they speak. Which provider it was is for the composition to know.

export type SmsStatusReport = {
  /** The provider's own name for the text. */
  id: string
  /** `passed-on`: on its way. `unknown`: the provider itself does not know. */
  state: 'passed-on' | 'delivered' | 'failed' | 'gone' | 'unknown'
  reason?: string
}

/** What somebody wrote to us, and what the channel understood it to ask for. */
export type IncomingSms = { from: string; text: string; optOut?: 'stop' | 'start' | 'help' }

export type TwilioRequest = { authToken: string; url: string; body: string; signature: string | undefined }
export type TwilioEvent =
  | { kind: 'receipt'; receipt: SmsStatusReport }
  | { kind: 'text'; text: IncomingSms }
  /** Signed, and nothing that concerns us. */
  | { kind: 'other' }

/** Undefined when it is not from Twilio. */
export type ReadTwilioWebhook = (request: TwilioRequest) => TwilioEvent | undefined
