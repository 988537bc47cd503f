// The parts of RFC 5322 and MIME that are needed to show an email to a person.

export type MimeMessage = {
  /** By their names in lower case, unfolded; of several with one name, the last. */
  headers: Record<string, string>
  /** All header lines in their order, with the original names. */
  headerLines: { name: string; value: string }[]
  subject: string
  text: string | null
  html: string | null
}

type MimePart = Pick<MimeMessage, 'headers' | 'headerLines'> & { body: Buffer }

export function parseMime(source: Buffer): MimeMessage {
  const part = readPart(source)
  const bodies = findBodies(part, 0)
  return {
    headers: part.headers,
    headerLines: part.headerLines.map(({ name, value }) => ({ name, value: decodeWords(value) })),
    subject: decodeWords(part.headers.subject ?? ''),
    text: bodies.text ?? null,
    html: bodies.html ?? null,
  }
}

function readPart(source: Buffer): MimePart {
  const end = source.indexOf('\r\n\r\n')
  const head = source.subarray(0, end < 0 ? source.length : end).toString('utf8')
  const headerLines = head
    .replaceAll(/\r\n[ \t]+/g, ' ')
    .split('\r\n')
    .flatMap((line) => {
      const colon = line.indexOf(':')
      return colon > 0 ? [{ name: line.slice(0, colon).trim(), value: line.slice(colon + 1).trim() }] : []
    })
  const headers = Object.fromEntries(headerLines.map(({ name, value }) => [name.toLowerCase(), value]))
  return { headers, headerLines, body: end < 0 ? Buffer.alloc(0) : source.subarray(end + 4) }
}

const MOST_NESTED = 5

type Bodies = { text?: string | undefined; html?: string | undefined }

/** The first body of each kind. */
function findBodies({ headers, body }: MimePart, depth: number): Bodies {
  if (/^attachment/i.test(headers['content-disposition'] ?? '')) return {}
  const type = headers['content-type'] ?? 'text/plain'
  const [, quoted, bare] = /boundary=(?:"([^"]+)"|([^\s;]+))/i.exec(type) ?? []
  const boundary = quoted ?? bare
  if (/^multipart\//i.test(type) && boundary !== undefined && depth < MOST_NESTED) {
    const found: Bodies = {}
    for (const part of split(body, `--${boundary}`)) {
      const { text, html } = findBodies(readPart(part), depth + 1)
      found.text ??= text
      found.html ??= html
    }
    return found
  }
  if (!/^text\//i.test(type)) return {}
  const charset = /charset="?([\w-]+)/i.exec(type)?.[1] ?? 'utf-8'
  const content = decode(unwrap(body, headers['content-transfer-encoding'] ?? ''), charset)
  return /^text\/html/i.test(type) ? { html: content } : { text: content }
}

/** The parts between the lines of the boundary. */
function split(body: Buffer, line: string): Buffer[] {
  const parts: Buffer[] = []
  let start = -1
  for (let at = body.indexOf(line); at >= 0; at = body.indexOf(line, at + line.length)) {
    if (start >= 0) parts.push(body.subarray(start, Math.max(start, at - 2)))
    start = body.indexOf('\r\n', at) + 2
    if (start < 2 || body.subarray(at + line.length, at + line.length + 2).toString() === '--') break
  }
  return parts
}

function unwrap(body: Buffer, encoding: string): Buffer {
  if (/^base64$/i.test(encoding)) return Buffer.from(body.toString('latin1'), 'base64')
  return /^quoted-printable$/i.test(encoding) ? unquote(body.toString('latin1').replaceAll(/=\r\n/g, '')) : body
}

const unquote = (text: string) =>
  Buffer.from(
    text.replaceAll(/=([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  )

function decode(bytes: Buffer, charset: string): string {
  try {
    return new TextDecoder(charset).decode(bytes)
  } catch {
    return bytes.toString('utf8')
  }
}

/** RFC 2047 encoded words; whitespace between two of them is dropped. */
const decodeWords = (text: string) =>
  text
    .replaceAll(/\?=\s+=\?/g, '?==?')
    .replaceAll(/=\?([\w-]+)\?([bq])\?([^?]*)\?=/gi, (_, charset, kind, content: string) =>
      decode(/b/i.test(kind) ? Buffer.from(content, 'base64') : unquote(content.replaceAll('_', ' ')), charset),
    )
