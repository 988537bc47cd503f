// Joins the parts of a long text. Each has a header with its number and the total (3GPP 23.040, 9.2.3.24.1).

import type { PDU } from 'smpp'

/** The limit for incomplete texts, which a sender leaves behind when it gives up. */
const MOST_OPEN = 1_000

/** Returns the whole text with its last part, and undefined before. */
export function joinParts(): (pdu: PDU) => string | undefined {
  const open = new Map<string, string[]>()
  return ({ source_addr, destination_addr, short_message, message_payload }) => {
    const text = String(short_message?.message || message_payload?.message || '')
    const [, , reference, total = 1, number = 1] = short_message?.udh?.find((it) => it[0] === 0) ?? []
    if (total <= 1) return text
    const name = `${source_addr} ${destination_addr} ${reference} ${total}`
    const parts = open.get(name) ?? []
    parts[number - 1] = text
    open.set(name, parts)
    const isWhole = Array.from({ length: total }, (_, i) => parts[i]).every((part) => part !== undefined)
    const [oldest] = open.keys()
    if (isWhole) open.delete(name)
    else if (open.size > MOST_OPEN && oldest !== undefined) open.delete(oldest)
    return isWhole ? parts.join('') : undefined
  }
}
