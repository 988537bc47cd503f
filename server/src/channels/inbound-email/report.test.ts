import { describe, expect, test } from 'vitest'
import { arf, exchange, exim, global, gmail, outOfOffice, postfix } from '../../../test/fixtures/mail/reports.ts'
import { parseReport } from './report.ts'

const ABOUT = { to: 'Ann@There.example', from: 'b-abc@bounce.example', messageId: '<1.3003@news.example>' }
const read = (text: string, ending = '\r\n') => parseReport(Buffer.from(text.replaceAll('\n', ending)))

describe('what servers say of a recipient', () => {
  const gone = { addresses: ['ann@there.example'], action: 'failed', code: 550 }
  test.each([
    [
      'Postfix',
      postfix(ABOUT),
      { ...gone, enhanced: '5.1.1', text: expect.stringMatching(/^550 5\.1\.1 .* does not exist$/) },
    ],
    ['Exim', exim(ABOUT), { ...gone, enhanced: '5.1.1', text: expect.stringContaining('User unknown') }],
    ['Exchange', exchange(ABOUT), { ...gone, enhanced: '5.1.10', text: expect.stringContaining('RecipientNotFound') }],
    ['Gmail', gmail(ABOUT), { ...gone, enhanced: '5.1.1', text: expect.stringContaining('NoSuchUser') }],
  ])('%s', (_, text, expected) => {
    for (const ending of ['\r\n', '\n']) {
      const report = read(text, ending)
      expect(report).toMatchObject({ kind: 'delivery', recipients: [expected] })
      expect(report.clues[0]).toBe('<b-abc@bounce.example>')
    }
  })

  test('in UTF-8 and base64', () => {
    expect(read(global({ ...ABOUT, to: 'アン@例.example' }, '552 5.2.2 いっぱい'))).toMatchObject({
      kind: 'delivery',
      recipients: [
        { addresses: ['アン@例.example'], action: 'failed', code: 552, enhanced: '5.2.2', text: '552 5.2.2 いっぱい' },
      ],
    })
  })
})

test('complaints name their kind, and where they say what they are about', () => {
  expect(read(arf({ ...ABOUT, unsubscribeUrl: 'https://x.example/e/u/abc' }))).toEqual({
    kind: 'complaint',
    type: 'abuse',
    clues: [
      '<b-abc@bounce.example>',
      '<b-abc@bounce.example>',
      '<https://x.example/e/u/abc>, <mailto:unsubscribe@news.example>',
    ],
  })
})

test('answers of machines are told from what people write', () => {
  expect(read(outOfOffice(ABOUT))).toEqual({ kind: 'other', isAutoReply: true, clues: [] })
  expect(read('Subject: unsubscribe\nAuto-Submitted: no\n\nplease')).toEqual({
    kind: 'other',
    isAutoReply: false,
    clues: [],
  })
  expect(read('Auto-Submitted: auto-generated\n\n')).toMatchObject({ isAutoReply: false })
})

describe('what is hostile', () => {
  const nested = (depth: number, inner: string): string =>
    depth === 0
      ? inner
      : `Content-Type: multipart/mixed; boundary=b${depth}\n\n--b${depth}\n${nested(depth - 1, inner)}\n--b${depth}--\n`
  const status =
    'Content-Type: message/delivery-status\n\nReporting-MTA: dns; x\n\nFinal-Recipient: rfc822; a@b\nAction: failed\n'

  test('parts within parts are read to a depth, and not beyond', () => {
    expect(read(nested(6, status)).kind).toBe('delivery')
    expect(read(nested(7, status)).kind).toBe('other')
    expect(read(nested(5_000, status)).kind).toBe('other')
  })

  test('only so many parts, and recipients, are looked at', () => {
    const parts = (count: number) =>
      `Content-Type: multipart/mixed; boundary=b\n\n${'--b\n\nx\n'.repeat(count)}--b\n${status}\n--b--\n`
    expect(read(parts(59)).kind).toBe('delivery')
    expect(read(parts(60)).kind).toBe('other')
    const many = `${status}\n`.concat('Final-Recipient: rfc822; a@b\nAction: failed\n\n'.repeat(1_000))
    const report = read(many)
    expect(report.kind === 'delivery' && report.recipients.length).toBe(99)
  })

  test.each([
    ['nothing', ''],
    ['an empty line', '\n'],
    ['no end of headers', 'Subject: x'],
    ['a boundary that never comes', 'Content-Type: multipart/report; boundary=b\n\nx'],
    ['a boundary within a line', 'Content-Type: multipart/report; boundary=b\n\nx--b\ny'],
    ['a boundary that begins like another', `Content-Type: multipart/report; boundary=b\n\n--bc\n${status}\n--bc--`],
    ['an empty boundary', 'Content-Type: multipart/report; boundary=""\n\n--\n'],
    ['no blocks', 'Content-Type: message/delivery-status\n\n\n\n\n'],
    ['bad base64', 'Content-Type: message/delivery-status\nContent-Transfer-Encoding: base64\n\n????'],
    ['bytes that are no UTF-8', 'Content-Type: message/delivery-status\n\n\u00ff\u00fe: \u0000\n'],
  ])('%s is read as what it is', (_, text) => {
    const report = parseReport(Buffer.from(text.replaceAll('\n', '\r\n'), 'latin1'))
    if (report.kind === 'delivery') expect(report.recipients).toEqual([])
    else expect(report.kind).toBe('other')
  })

  test('a megabyte of folded lines, of boundaries or of empty lines is read like any other', () => {
    expect(read(`Subject: ${'a\n '.repeat(300_000)}`).kind).toBe('other')
    for (const line of ['--b\n', '--bb']) {
      const text = `Content-Type: multipart/report; boundary=b\n\n${line.repeat(250_000)}`
      expect(read(text).kind).toBe('other')
    }
    expect(read(`Content-Type: message/delivery-status\n\n${'\n \n'.repeat(300_000)}`).kind).toBe('delivery')
  })
})
