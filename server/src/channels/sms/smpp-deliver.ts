// Reads what a message centre delivers to us (deliver_sm): reports about SMS that it accepted, and SMS from people.

import type { PDU, Text } from 'smpp'
import { ownProperty } from '../../lib/own-property.ts'
import { decodeGsm7 } from './gsm7.ts'
import type { InboundSms, SmsReceipt } from './message.ts'
import { readOptOut } from './opt-out.ts'

export type Delivered = { kind: 'receipt'; receipt: SmsReceipt } | { kind: 'text'; text: InboundSms }

/** States by their word in the text, and by their number in the optional field message_state. */
const STATES: Record<string, SmsReceipt['state']> = {
  ENROUTE: 'passed-on',
  ACCEPTD: 'passed-on',
  DELIVRD: 'delivered',
  EXPIRED: 'failed',
  DELETED: 'failed',
  UNDELIV: 'failed',
  REJECTD: 'failed',
  UNKNOWN: 'unknown',
}
const WORDS = ['', 'ENROUTE', 'DELIVRD', 'EXPIRED', 'DELETED', 'UNDELIV', 'ACCEPTD', 'UNKNOWN', 'REJECTD']
const REASONS: Record<string, string> = {
  EXPIRED: 'expired',
  DELETED: 'deleted',
  UNDELIV: 'undelivered',
  REJECTD: 'rejected',
}

const MESSAGE_TYPE = 0x3c
const IS_RECEIPT = 0x04

/** Returns undefined for a report that names no SMS, because it would be of no use. */
export function readDelivered(pdu: PDU): Delivered | undefined {
  const text = textOf(pdu.short_message) || textOf(pdu.message_payload)
  if (((pdu.esm_class ?? 0) & MESSAGE_TYPE) !== IS_RECEIPT && pdu.receipted_message_id === undefined) {
    const optOut = readOptOut(text)
    return {
      kind: 'text',
      text: { from: numberOf(pdu.source_addr), to: numberOf(pdu.destination_addr), text, ...(optOut && { optOut }) },
    }
  }
  const receipt = readReceipt(pdu, text)
  return receipt && { kind: 'receipt', receipt }
}

/**
 * The optional fields are meant for this; the format of the text is only a convention (3.4, appendix B), but many
 * centres follow it exactly.
 */
function readReceipt({ receipted_message_id, message_state }: PDU, text: string): SmsReceipt | undefined {
  const id = receipted_message_id || /\bid:\s*(\S+)/i.exec(text)?.[1]
  if (!id) return undefined
  const word = (WORDS[message_state ?? 0] || /\bstat:\s*(\w+)/i.exec(text)?.[1] || 'UNKNOWN').toUpperCase()
  const state = ownProperty(STATES, word) ?? 'unknown'
  const reason = ownProperty(REASONS, word)
  return { id, state, ...(reason && { reason }) }
}

function textOf(text: Text | undefined): string {
  const message = text?.message ?? ''
  // The package leaves bytes if it does not know the alphabet. Opt-out keywords are the same in all alphabets.
  return typeof message === 'string' ? message : decodeGsm7(message)
}

/** Message centres omit the plus. */
const numberOf = (address = '') => (/^\d{7,}$/.test(address) ? `+${address}` : address)
