import fc from 'fast-check'
import PostalMime from 'postal-mime'
import { describe, expect, test } from 'vitest'
import { aMail, CONTENT } from '../../../../test/channels/subjects/mail.ts'
import { cpuTimeMs } from '../../../../test/cpu-time.ts'
import { parseMime } from '../../../lib/parse-mime.ts'
import { fillPieces } from '../../../lib/placeholders.ts'
import type { EmailAttachment, EmailContent, EmailItem } from '../message.ts'
import { encodeBase64 } from './base64.ts'
import { buildMessage, buildMessagePieces } from './build-message.ts'
import { encodeQuotedPrintable } from './quoted-printable.ts'

const withContent = (changes: Partial<EmailContent>, item: Partial<EmailItem> = {}) =>
  aMail({ content: { ...CONTENT, ...changes }, ...item })

/** Read by a parser that shares nothing with what wrote it. */
const parse = async (item: EmailItem) => PostalMime.parse(await buildMessage(item))
const textOf = async (item: EmailItem) => (await buildMessage(item)).toString('latin1')

const OUR_NAMES = [
  'to',
  'date',
  'message-id',
  'from',
  'subject',
  'reply-to',
  'list-unsubscribe',
  'list-unsubscribe-post',
  'feedback-id',
  'mime-version',
  'content-type',
]

describe('a mail', () => {
  test('says to a stranger’s parser what it was given, with its references at their places', async () => {
    const item = aMail()
    const mail = await parse(item)
    expect(mail).toMatchObject({
      from: CONTENT.from,
      to: [{ address: item.to }],
      replyTo: [{ address: CONTENT.replyTo }],
      subject: CONTENT.subject,
      messageId: item.messageIdHeader,
      date: '2030-01-01T09:00:00.000Z',
    })
    expect(mail.html?.trimEnd()).toBe(fillPieces(CONTENT.html, item.referenceFor))
    expect(mail.text?.trimEnd()).toBe(fillPieces(CONTENT.text, item.referenceFor))
    const header = (name: string) => mail.headers.find(({ key }) => key === name)?.value
    expect(header('list-unsubscribe')).toBe(
      `<https://t.example.com/e/u/${item.referenceFor('stop')}>, <mailto:b-${item.referenceFor('stop')}@bounce.example.com?subject=unsubscribe>`,
    )
    expect(header('date')).toBe('Tue, 01 Jan 2030 09:00:00 +0000')
    expect(mail.headers.map(({ key }) => key)).toEqual(OUR_NAMES)
  })

  test('differs between two who get the same in nothing but what is theirs', async () => {
    const [one, other] = [aMail(), aMail()]
    const plain = async (item: EmailItem) =>
      (await textOf(item))
        .replaceAll(/\b(click|open|stop)a+\d+/g, 'R')
        .replace(item.to, 'T')
        .replace(item.messageIdHeader, 'M')
    expect(await plain(one)).toBe(await plain(other))
  })

  test('has one form alone where the other is missing', async () => {
    const [text, html, neither] = await Promise.all([
      parse(withContent({ html: [] })),
      parse(withContent({ text: [''] })),
      parse(withContent({ html: [''], text: [] })),
    ])
    expect([text.html, text.text?.trim().split('\n')[0]]).toEqual([undefined, 'They ring'])
    expect([html.text, html.html?.trim().startsWith('<p>They ring')]).toEqual([undefined, true])
    expect(neither.text?.trim()).toBe('')
  })

  test('is read by the sink as well', async () => {
    const item = aMail()
    const { subject, text } = parseMime(await buildMessage(item))
    expect({ subject, text }).toEqual({
      subject: CONTENT.subject,
      text: fillPieces(CONTENT.text, item.referenceFor).replaceAll('\n', '\r\n'),
    })
  })

  test('writes addresses of every form so that they are read back', async () => {
    const addresses = {
      'plain@example.com': 'plain@example.com',
      'a..b.@docomo.example': '"a..b."@docomo.example',
      '"quoted @ local"@example.com': '"quoted @ local"@example.com',
      'jörg@example.com': 'jörg@example.com',
      'someone@bücher.example': 'someone@xn--bcher-kva.example',
      "o'hara+tag@Example.COM": "o'hara+tag@example.com",
    }
    for (const [given, written] of Object.entries(addresses))
      expect((await buildMessage(aMail({ to: given }))).toString()).toContain(`\r\nTo: <${written}>\r\n`.slice(2))
  })

  test.each([
    'a@b@c.example',
    'a b@c.example',
    'a@c.example ',
    'a@-c.example',
    'a@c_d.example',
    'a@[127.0.0.1]',
    `${'a'.repeat(65)}@c.example`,
    `a@${'b'.repeat(250)}.example`,
    'a\u200b@c.example',
    'a@c.exa\u0000mple',
    '\ud800@c.example',
    '"a"b"@c.example',
  ])('is none to %j', async (to) => {
    await expect(buildMessage(aMail({ to }))).rejects.toThrow('address')
  })

  test.each([
    [
      ['X-One', ['a']],
      ['x-one', ['b']],
    ],
    [['From', ['a']]],
    [['Content-Type', ['text/plain']]],
    [['X Y', ['a']]],
    [['X:Y', ['a']]],
    [['', ['a']]],
    [['X-Ref', ['ä', 'b']]],
  ] as const)('has no headers like %j', async (...headers) => {
    await expect(buildMessage(withContent({ headers }))).rejects.toThrow('header not valid')
  })
})

const nasty = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc.string({ unit: 'grapheme', maxLength: 2_000 }),
  fc
    .array(
      fc.constantFrom(
        '\r\n',
        '\n',
        '\r',
        '\0',
        '\u2028',
        '\u0085',
        '\v',
        ' ',
        '  ',
        '\t',
        'Bcc: a@b.example',
        '=?utf-8?q?a?=',
        '"',
        '\\',
        ':',
        '.',
        '<',
        '>',
        ',',
        'ä',
        '🎉',
        'word',
        '=',
      ),
      { maxLength: 60 },
    )
    .map((parts) => parts.join('')),
  fc.constantFrom('x'.repeat(5_000), `${'a  '.repeat(900)}b`, ' ', '"', `${'🎉'.repeat(80)}`),
)

describe('whatever it is given', () => {
  test('no text becomes another header, and no line is too long', async () => {
    await fc.assert(
      fc.asyncProperty(nasty, nasty, nasty, async (subject, name, value) => {
        const message = await textOf(
          withContent({ subject, from: { name, address: 'a@example.com' }, headers: [['X-Given', [value]]] }),
        )
        const head = message.slice(0, message.indexOf('\r\n\r\n'))
        const names = head.split(/\r\n(?![ \t])/).map((line) => line.split(':')[0])
        expect(names).toEqual([
          'To',
          'Date',
          'Message-ID',
          'From',
          'Subject',
          'Reply-To',
          'X-Given',
          'MIME-Version',
          'Content-Type',
        ])
        expect(/[^\r]\n|\r[^\n]|\0/.test(message)).toBe(false)
        expect(message.split('\r\n').every((line) => line.length <= 998 && /^[\t -~]*$/.test(line))).toBe(true)
      }),
      { numRuns: 400 },
    )
  })

  test('the subject and the name of the sender are read as they were written', async () => {
    const said = (text: string) => text.toWellFormed().replaceAll(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    await fc.assert(
      fc.asyncProperty(nasty, nasty, async (subject, name) => {
        const mail = await parse(withContent({ subject, from: { name, address: 'a@example.com' } }))
        const same = (text = '') => said(text).replaceAll(/\s+/g, ' ').trim()
        expect(same(mail.subject)).toBe(same(subject))
        expect(mail.from?.address).toBe('a@example.com')
      }),
      { numRuns: 200 },
    )
  })

  test('text and HTML are read as they were written', async () => {
    const body = fc
      .array(
        nasty.map((text) => text.replaceAll('\0', '')),
        { minLength: 1, maxLength: 4 },
      )
      .map((texts) => texts.flatMap((text, n) => (n === 0 ? [text] : [`place${n}`, text])))
    await fc.assert(
      fc.asyncProperty(body, body, async (html, text) => {
        const item = withContent({ html, text })
        const message = (await buildMessage(item)).toString('latin1')
        expect(message.split('\r\n').every((line) => line.length <= 200 && !line.startsWith('.'))).toBe(true)
        const lines = (it: string) => it.toWellFormed().replaceAll(/\r\n?/g, '\n')
        const written = { html: partOf(html, item, lines), plain: partOf(text, item, lines) }
        expect(unquoted(message, 'html')).toBe(written.html)
        // A mail that says nothing at all has an empty text.
        expect(unquoted(message, 'plain')).toBe(written.html === undefined ? (written.plain ?? '') : written.plain)
      }),
      { numRuns: 200 },
    )
  })

  const partOf = (pieces: string[], { referenceFor }: EmailItem, lines: (it: string) => string) =>
    pieces.length === 1 && pieces[0] === '' ? undefined : fillPieces(pieces.map(lines), referenceFor)

  /** By the letter of RFC 2045; undefined where there is no such part. */
  function unquoted(message: string, type: string): string | undefined {
    const boundary = /boundary="([^"]+)"/.exec(message)?.[1]
    const parts = boundary === undefined ? [message] : message.split(`--${boundary}`).slice(1, -1)
    const part = parts.find((it) => it.includes(`Content-Type: text/${type}`))
    const body = part?.slice(part.indexOf('\r\n\r\n') + 4).replace(/\r\n$/, '')
    if (body === undefined) return undefined
    const bytes = body
      .replaceAll('=\r\n', '')
      .replaceAll(/=([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
    return Buffer.from(bytes, 'latin1').toString().replaceAll('\r\n', '\n')
  }

  test('empty lines cost no more than others', async () => {
    const empty = '\n'.repeat(100_000)
    let html: string | undefined
    const usedMs = await cpuTimeMs(async () => {
      html = (await parse(withContent({ html: [`<p>a</p>${empty}<p>b</p>`], text: [empty] }))).html
    })
    expect(usedMs).toBeLessThan(2_000)
    expect(html?.trimEnd()).toBe(`<p>a</p>${empty}<p>b</p>`)
  })

  test('quoted-printable holds nothing that a boundary or the end of a message is made of', () => {
    fc.assert(
      fc.property(nasty, (text) => {
        const encoded = encodeQuotedPrintable(text)
        expect(encoded.includes('=_')).toBe(false)
        for (const line of encoded.split('\r\n')) {
          expect(line.length).toBeLessThanOrEqual(76)
          expect(line).toMatch(/^(?![.F])[\t -~]*$/)
          expect(line).not.toMatch(/[ \t]$/)
        }
      }),
    )
  })
})

describe('files', () => {
  const aFile = (name: string, bytes = Buffer.from('They ring'), contentType = 'application/pdf'): EmailAttachment => ({
    name,
    contentType,
    encoded: encodeBase64(bytes),
  })
  const every = Buffer.from(Array.from({ length: 3_000 }, (_, i) => i % 256))

  test.each([
    ['both forms', {}],
    ['HTML alone', { text: [''], html: ['<p>a</p>\n\n\n'] }],
    ['neither', { text: [], html: [] }],
  ])('hang on to a mail with %s, and leave what it says as it was', async (_, said) => {
    const files = [aFile('a.pdf', every), aFile('empty.txt', Buffer.alloc(0), 'text/plain'), aFile('c.pdf')]
    const item = withContent({ ...said, files })
    const mail = await parse(item)
    const plain = await parse({ ...item, content: { ...CONTENT, ...said } })
    expect([mail.html, mail.text?.trim()]).toEqual([plain.html, plain.text?.trim()])
    expect(mail.attachments.map(({ filename, mimeType, disposition }) => [filename, mimeType, disposition])).toEqual([
      ['a.pdf', 'application/pdf', 'attachment'],
      ['empty.txt', 'text/plain', 'attachment'],
      ['c.pdf', 'application/pdf', 'attachment'],
    ])
    const contents = mail.attachments.map(({ content }) => Buffer.from(content as ArrayBuffer))
    expect(contents).toEqual([every, Buffer.alloc(0), Buffer.from('They ring')])
    expect(mail.headers.map(({ key }) => key)).toEqual(OUR_NAMES)
    const message = await textOf(item)
    expect(message.split('\r\n').every((line) => line.length <= 200 && !line.startsWith('.'))).toBe(true)
  })

  test('are the same bytes in the mails of all, and in none that has none', async () => {
    const files = [aFile('a.pdf', every)]
    const content = { ...CONTENT, files }
    const [one, other] = await Promise.all([
      buildMessagePieces(aMail({ content })),
      buildMessagePieces(aMail({ content })),
    ])
    expect(one?.files).toBe(other?.files)
    expect(one?.files[1]).toBe(files[0]?.encoded)
    expect(await buildMessagePieces(aMail())).toMatchObject({ files: [] })
    const without = await buildMessagePieces(withContent({ files: [] }))
    expect(without.message).toContain('\r\nContent-Type: multipart/alternative; boundary=')
    expect(without.message).not.toContain('mixed')
  })

  test('are read by the sink as well, which does not take them for what the mail says', async () => {
    const files = [aFile('a.txt', Buffer.from('not this'), 'text/plain'), aFile('a.html', every, 'text/html')]
    const { text, html } = parseMime(await buildMessage(withContent({ text: [''], html: ['<p>this</p>'], files })))
    expect([text, html]).toEqual([null, '<p>this</p>'])
  })

  test.each([
    ['invoice 7 (final).pdf', 'filename="invoice 7 (final).pdf"'],
    ['Rechnung für Müller.pdf', "filename*=UTF-8''Rechnung%20f%C3%BCr%20M%C3%BCller.pdf"],
    ['100% "so".pdf', "filename*=UTF-8''100%25%20%22so%22.pdf"],
  ])('%s is written as %s', async (name, written) => {
    expect(await textOf(withContent({ files: [aFile(name)] }))).toContain(
      `\r\nContent-Disposition: attachment;\r\n ${written}\r\n`,
    )
  })

  test.each([
    ['领收书'.repeat(40), '领收书'.repeat(40)],
    [`${'👩‍🚒'.repeat(30)}.pdf`, `${'👩‍🚒'.repeat(30)}.pdf`],
    [`${'x'.repeat(400)}.pdf`, `${'x'.repeat(251)}.pdf`],
    ['a.pdf"; x="y', 'a.pdf"; x="y'],
    ['a\r\nBcc: all@example.com\r\n\r\n.pdf', 'a Bcc: all@example.com .pdf'],
    ['../../etc/passwd', 'passwd'],
    ['C:\\temp\\a.pdf', 'a.pdf'],
    ['invoice\u202efdp.exe', 'invoice fdp.exe'],
    ['  two  spaces\t.pdf ', 'two spaces .pdf'],
    ['', 'attachment'],
    ['\0', 'attachment'],
  ])('the name %j is read as %j', async (name, read) => {
    const item = withContent({ files: [aFile(name)] })
    const mail = await parse(item)
    expect(mail.attachments.map(({ filename }) => filename)).toEqual([read])
    for (const line of (await textOf(item)).split('\r\n')) expect(line.length).toBeLessThanOrEqual(200)
  })

  test.each([
    'text/html\r\nBcc: all@example.com',
    'text/html; charset="x"',
    'message/rfc822',
    'multipart/mixed',
    'pdf',
    '',
  ])('a type like %j is none', async (contentType) => {
    const mail = await parse(withContent({ files: [aFile('a', every, contentType)] }))
    expect(mail.attachments).toMatchObject([{ filename: 'a', mimeType: 'application/octet-stream' }])
    expect(mail.headers.map(({ key }) => key)).toEqual(OUR_NAMES)
  })

  test('whatever their names and types are, they add no part and no header', async () => {
    await fc.assert(
      fc.asyncProperty(nasty, nasty, async (name, contentType) => {
        const item = withContent({ files: [aFile(name, every, contentType)] })
        const mail = await parse(item)
        expect(mail.attachments).toHaveLength(1)
        expect(Buffer.from(mail.attachments[0]?.content as ArrayBuffer)).toEqual(every)
        expect(mail.headers.map(({ key }) => key)).toEqual(OUR_NAMES)
        const message = await textOf(item)
        expect(message.split('\r\n').every((line) => line.length <= 998 && /^[ -~]*$/.test(line))).toBe(true)
      }),
      { numRuns: 200 },
    )
  })

  test('base64 stands in lines of 76', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
        const encoded = encodeBase64(Buffer.from(bytes)).toString('latin1')
        expect(encoded.replaceAll('\r\n', '')).toBe(Buffer.from(bytes).toString('base64'))
        const lines = encoded.split('\r\n')
        expect(lines.pop()).toBe('')
        expect(lines.slice(0, -1).every((line) => line.length === 76)).toBe(true)
      }),
    )
  })
})
