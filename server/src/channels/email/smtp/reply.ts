// What a mail server says: a code, an enhanced code (RFC 3463) where it has one, and words, on one line or several.

export type SmtpReply = { code: number; enhanced?: string; text: string; lines: readonly string[] }

export type SmtpReplyParser = {
  /** False for bytes that are no replies, or too many of them for one. */
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
      // Bytes, not characters: what is cut in two here is one again when the rest has come.
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
