// Twilio's error codes (https://www.twilio.com/docs/api/errors) that say more than the status of the answer.

import type { ChannelOutcome } from '../channel.ts'

type TwilioVerdict = { kind: 'retry' | 'failed' | 'gone' | 'misconfigured'; reason: string; pausesProvider?: boolean }

const entry = (kind: TwilioVerdict['kind'], reason: string, ...codes: number[]) =>
  codes.map((code): [number, TwilioVerdict] => [code, { kind, reason }])
const pause = (reason: string, ...codes: number[]) =>
  codes.map((code): [number, TwilioVerdict] => [code, { kind: 'retry', reason, pausesProvider: true }])

const VERDICTS = new Map<number, TwilioVerdict>([
  ...entry('gone', 'not a valid number', 21211, 21217, 21401, 21421),
  ...entry('gone', 'not a mobile number', 21614),
  ...entry('gone', 'opted out', 21610),
  ...entry('gone', 'number out of reach', 21214, 30005, 30006),
  ...entry('failed', 'country not enabled', 21408),
  ...entry('failed', 'number out of reach from this sender', 21612),
  ...entry('failed', 'text not accepted', 21602, 21604, 21605, 21617, 21619),
  ...entry('failed', 'media not accepted', 21620, 21623, 12300),
  ...entry('failed', 'handset out of reach', 30003),
  ...entry('failed', 'blocked', 30004),
  ...entry('failed', 'filtered by the carrier', 30007),
  ...entry('failed', 'undelivered', 30008),
  ...entry('misconfigured', 'credentials refused', 20003, 20006),
  ...entry('misconfigured', 'account not active', 20005, 30002, 90010),
  ...entry('misconfigured', 'account not found', 20404),
  ...entry('misconfigured', 'sender not accepted', 21212, 21603, 21606, 21618, 21659, 21660, 21701, 21703, 21704),
  ...entry('misconfigured', 'sender not registered', 30032, 30034),
  ...entry('misconfigured', 'status callback not accepted', 21609),
  ...pause('too many requests', 20429, 14107, 30022),
  ...pause('queue full', 21611, 30001),
])

/** Interprets a code. Returns undefined if the status of the answer has to decide. */
export const judgeTwilioCode = (code: unknown): TwilioVerdict | undefined => VERDICTS.get(Number(code))

export function judgeTwilioStatus(status: number): Exclude<ChannelOutcome, { kind: 'sent' }> {
  if (status === 401 || status === 403) return { kind: 'misconfigured', reason: 'credentials refused' }
  if (status === 404) return { kind: 'misconfigured', reason: 'account not found' }
  if (status === 429) return { kind: 'retry', reason: 'too many requests', pausesProvider: true }
  if (status >= 500 || status === 408) return { kind: 'retry', reason: `status ${status}` }
  return { kind: 'failed', reason: `status ${status}` }
}
