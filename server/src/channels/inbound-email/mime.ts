// As much of RFC 5322 and MIME as it takes to find the parts of a report. Bytes are kept as latin1 until a part is
// decoded. Messages that are attached as a part are not parsed: what they say is not what the report says.

export type MimeHeaders = ReadonlyMap<string, readonly string[]>
export type MimePart = { type: string; headers: MimeHeaders /** Decoded. */; text(): string }

const MOST_NESTED = 6
const MOST_PARTS = 60

/** All leaf parts, in their order. */
export function parseMimeParts(message: Buffer): { headers: MimeHeaders; parts: MimePart[] } {
  const parts: MimePart[] = []
  const { headers, body } = splitHeaders(message.toString('latin1'))
  collect(headers, body, 0)
  return { headers, parts }

  function collect(headers: MimeHeaders, body: string, depth: number) {
    const { type, boundary } = readType(headers.get('content-type')?.[0])
    if (type.startsWith('multipart/') && boundary !== undefined) {
      if (depth >= MOST_NESTED) return
      for (const piece of splitParts(body, boundary)) {
        if (parts.length >= MOST_PARTS) return
        const inner = splitHeaders(piece)
        collect(inner.headers, inner.body, depth + 1)
      }
      return
    }
    const encoding = headers.get('content-transfer-encoding')?.[0] ?? ''
    parts.push({ type, headers, text: () => decode(body, encoding) })
  }
}

/**
 * Returns unfolded values by their names in lower case. Also parses the fields of reports, which have the same form.
 */
export function parseHeaders(text: string): MimeHeaders {
  const headers = new Map<string, string[]>()
  for (const line of text.replaceAll(/\r?\n[ \t]+/g, ' ').split(/\r?\n/)) {
    const colon = line.indexOf(':')
    if (colon <= 0) continue
    const name = line.slice(0, colon).trim().toLowerCase()
    const before = headers.get(name)
    if (before) before.push(line.slice(colon + 1).trim())
    else headers.set(name, [line.slice(colon + 1).trim()])
  }
  return headers
}

/** Parses the headers of a message. */
export const headersOf = (message: string): MimeHeaders => splitHeaders(message).headers

function splitHeaders(text: string): { headers: MimeHeaders; body: string } {
  // A part without headers begins with the empty line.
  const [empty] = /^\r?\n/.exec(text) ?? []
  if (empty !== undefined) return { headers: new Map(), body: text.slice(empty.length) }
  const [gap] = /\r?\n\r?\n/.exec(text) ?? []
  if (gap === undefined) return { headers: parseHeaders(text), body: '' }
  const end = text.indexOf(gap)
  return { headers: parseHeaders(text.slice(0, end)), body: text.slice(end + gap.length) }
}

function readType(given = 'text/plain'): { type: string; boundary: string | undefined } {
  const [, quoted, bare] = /;\s*boundary\s*=\s*(?:"([^"]+)"|([^\s;"]+))/i.exec(given) ?? []
  return { type: (given.split(';')[0] as string).trim().toLowerCase(), boundary: quoted ?? bare }
}

/** Returns the text between the boundary lines. */
function splitParts(body: string, boundary: string): string[] {
  const line = `--${boundary}`
  const parts: string[] = []
  let start = -1
  for (let at = body.indexOf(line); at >= 0; at = body.indexOf(line, at + line.length)) {
    if (at > 0 && body[at - 1] !== '\n') continue
    const end = body.indexOf('\n', at)
    const after = body.slice(at + line.length, end < 0 ? undefined : end)
    const isLast = after.startsWith('--')
    // This may be a longer boundary that begins with this one.
    if (!isLast && after.trim() !== '') continue
    if (start >= 0) parts.push(body.slice(start, at).replace(/\r?\n$/, ''))
    if (isLast || end < 0) return parts
    start = end + 1
  }
  if (start >= 0) parts.push(body.slice(start))
  return parts
}

function decode(body: string, encoding: string): string {
  const name = encoding.trim().toLowerCase()
  if (name === 'base64') return Buffer.from(body, 'base64').toString('utf8')
  const bytes = name === 'quoted-printable' ? unquote(body) : body
  return Buffer.from(bytes, 'latin1').toString('utf8')
}

const unquote = (text: string) =>
  text
    .replaceAll(/=\r?\n/g, '')
    .replaceAll(/=([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
