// Interprets the command status of a message centre (SMPP 3.4, 5.1.3).

import type { ChannelOutcome } from '../channel.ts'

type SmppRefusal = Exclude<ChannelOutcome, { kind: 'sent' }>

const entry = (outcome: SmppRefusal, ...statuses: number[]) =>
  statuses.map((status): [number, SmppRefusal] => [status, outcome])

const SUBMIT = new Map<number, SmppRefusal>([
  ...entry({ kind: 'retry', reason: 'too many requests', pausesProvider: true, afterMs: 1_000 }, 0x58),
  ...entry({ kind: 'retry', reason: 'queue full', pausesProvider: true, afterMs: 5_000 }, 0x14),
  // The session may have ended at the centre while the SMS was on its way to it.
  ...entry({ kind: 'retry', reason: 'not signed in' }, 0x04),
  ...entry({ kind: 'retry', reason: 'message centre failed' }, 0x08, 0x64, 0x66, 0x102),
  ...entry({ kind: 'gone', reason: 'not a valid number' }, 0x0b),
  ...entry({ kind: 'misconfigured', reason: 'sender not accepted' }, 0x0a, 0x48, 0x49, 0x105),
  ...entry({ kind: 'misconfigured', reason: 'service not allowed' }, 0x15, 0x53, 0x100, 0x101, 0x103),
  ...entry({ kind: 'failed', reason: 'text not accepted' }, 0x01, 0x104),
])

export const judgeSubmitStatus = (status: number): SmppRefusal =>
  SUBMIT.get(status) ?? { kind: 'failed', reason: `status ${status}` }

/**
 * Wrong name, password, system type or address range mean that the settings are wrong. Anything else may be temporary.
 */
export function judgeBindStatus(status: number): SmppRefusal {
  if ([0x0d, 0x0e, 0x0f, 0x53].includes(status)) return { kind: 'misconfigured', reason: 'credentials refused' }
  return { kind: 'retry', reason: `sign-in refused, status ${status}` }
}
