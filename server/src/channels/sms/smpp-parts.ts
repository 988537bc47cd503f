// Turns a text into the fields of submit_sm, once for each part.

import type { ChannelOutcome } from '../channel.ts'
import { EMPTY, type SmsItem } from './message.ts'
import { cutIntoSegments, joinHeader, MOST_PARTS } from './segments.ts'

/** Type of number, and numbering plan. */
export type NumberKind = { ton: number; npi: number }

const DATA_CODING = { gsm7: 0, ucs2: 8 }
const HAS_HEADER = 0x40

/** Returns an outcome if there are no parts to send. */
export function partsOf(
  { to, text, mediaUrls, from }: SmsItem & { from: string },
  reference: number,
  sender: NumberKind = kindOf(from),
): Record<string, unknown>[] | ChannelOutcome {
  if (text === '') return EMPTY
  if (mediaUrls?.length) return { kind: 'failed', reason: 'media not supported' }
  if (!/^\+\d{7,15}$/.test(to)) return { kind: 'gone', reason: 'not a valid number' }
  if (!/^[\x20-\x7e]{1,20}$/.test(from)) return { kind: 'failed', reason: 'sender not valid' }
  const { encoding, parts } = cutIntoSegments(text)
  if (parts.length > MOST_PARTS) return { kind: 'failed', reason: 'text too long' }
  const total = parts.length
  return parts.map((bytes, i) => ({
    source_addr_ton: sender.ton,
    source_addr_npi: sender.npi,
    source_addr: from.replace(/^\+/, ''),
    dest_addr_ton: 1,
    dest_addr_npi: 1,
    destination_addr: to.slice(1),
    // We set bytes and alphabet ourselves: for the GSM alphabet, the package would use a number that few centres know.
    data_coding: DATA_CODING[encoding],
    esm_class: total === 1 ? 0 : HAS_HEADER,
    short_message: total === 1 ? bytes : Buffer.concat([joinHeader(reference, total, i + 1), bytes]),
    // Only the last part requests a report, because handsets show the text once all parts have arrived.
    registered_delivery: i === total - 1 ? 1 : 0,
  }))
}

/** An international number, a short code, or a name. */
function kindOf(sender: string): NumberKind {
  if (/^\+\d+$/.test(sender)) return { ton: 1, npi: 1 }
  return /^\d+$/.test(sender) ? { ton: 3, npi: 0 } : { ton: 5, npi: 0 }
}
