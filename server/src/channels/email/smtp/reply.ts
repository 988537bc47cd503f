// A mail server's reply: a code, an optional enhanced code (RFC 3463), and text, on one line or several.

export type SmtpReply = { code: number; enhanced?: string; text: string; lines: readonly string[] }

export type SmtpReplyParser = {
  /** Returns false if the bytes are not a reply, or are too many for one. */
  feed(chunk: Buffer): boolean
}

const MOST_LINE = 4_096
const MOST_LINES = 128
const LINE = /^([2-5]\d\d)(?:([ -])(.*))?$/s

export function createSmtpReplyParser(onReply: (reply: SmtpReply) => void): SmtpReplyParser {
  let rest = ''
  let lines: string[] = []

  function take(line: string): boolean {
    const [, code, mark, text = ''] = LINE.exec(line) ?? []
    if (code === undefined || lines.length === MOST_LINES) return false
    lines.push(text)
    if (mark === '-') return true
    const said = lines
    lines = []
    onReply(readReply(Number(code), said))
    return true
  }

  return {
    feed(chunk) {
      // Decoded as bytes, not characters: a character that is split between two chunks becomes whole again when the
      // rest arrives.
      rest += chunk.toString('latin1')
      for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n')) {
        const line = rest.slice(0, rest[end - 1] === '\r' ? end - 1 : end)
        rest = rest.slice(end + 1)
        if (line.length > MOST_LINE || !take(line)) return false
      }
      return rest.length <= MOST_LINE
    },
  }
}

function readReply(code: number, lines: readonly string[]): SmtpReply {
  const text = lines.join(' ')
  const [, enhanced] = /^([245]\.\d{1,3}\.\d{1,3})(?=\s|$)/.exec(text) ?? []
  return { code, text, lines, ...(enhanced !== undefined && { enhanced }) }
}
