// A text as the fields of submit_sm, once for each part of it.

import type { ChannelOutcome } from '../channel.ts'
import { EMPTY, type SmsItem } from './message.ts'
import { cutIntoSegments, joinHeader, MOST_PARTS } from './segments.ts'

/** Type of number, and numbering plan. */
export type NumberKind = { ton: number; npi: number }

const DATA_CODING = { gsm7: 0, ucs2: 8 }
const HAS_HEADER = 0x40

/** Or why there are none. */
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
    // Bytes and their alphabet are ours to say: the package would name the alphabet of GSM by a number that few centres know.
    data_coding: DATA_CODING[encoding],
    esm_class: total === 1 ? 0 : HAS_HEADER,
    short_message: total === 1 ? bytes : Buffer.concat([joinHeader(reference, total, i + 1), bytes]),
    // The last part is reported on: handsets show the text when all of them are there.
    registered_delivery: i === total - 1 ? 1 : 0,
  }))
}

/** International number, short code, or name. */
function kindOf(sender: string): NumberKind {
  if (/^\+\d+$/.test(sender)) return { ton: 1, npi: 1 }
  return /^\d+$/.test(sender) ? { ton: 3, npi: 0 } : { ton: 5, npi: 0 }
}
