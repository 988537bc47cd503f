import { afterEach, describe, expect, test } from 'vitest'
import { connectSmtp, type Smtp } from '../../../test/email-back.ts'
import { type InboundSmtpSettings, listenForInboundEmail, type ReceivedEmail } from './listen.ts'

const stops: (() => unknown)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop()
})

async function server(more: Partial<InboundSmtpSettings> = {}) {
  const received: ReceivedEmail[] = []
  const listener = await listenForInboundEmail({
    host: '127.0.0.1',
    port: 0,
    name: 'mail.example',
    hasMailbox: (address) => address.startsWith('here@'),
    take: async (mail) => void received.push(mail),
    ...more,
  })
  stops.push(listener.close)
  const connect = async (): Promise<Smtp> => {
    const smtp = await connectSmtp(listener.port)
    stops.push(smtp.close)
    return smtp
  }
  return { received, connect, listener }
}

const ENVELOPE = ['EHLO x', 'MAIL FROM:<a@b.example>', 'RCPT TO:<here@x.example>', 'DATA']

test('takes mail for its mailboxes, with commands one by one or all at once', async () => {
  const { received, connect } = await server()
  const smtp = await connect()
  const [hello = '', ...rest] = await smtp.say(...ENVELOPE)
  expect(hello.split('\r\n')).toEqual([
    '250-mail.example',
    '250-PIPELINING',
    '250-SIZE 1048576',
    '250-8BITMIME',
    '250-SMTPUTF8',
    '250 ENHANCEDSTATUSCODES',
  ])
  expect(rest).toEqual(['250 2.1.0 ok', '250 2.1.5 ok', '354 go ahead'])
  smtp.socket.write('Subject: a\r\n\r\n..dot\r\nü\n.\nstill\r\n.\r\nNOOP\r\n')
  expect([await smtp.hear(), await smtp.hear()]).toEqual(['250 2.0.0 taken', '250 2.0.0 ok'])
  expect(await smtp.say('MAIL FROM:<>', 'RCPT TO:<here@y.example>', 'DATA')).toEqual([
    '250 2.1.0 ok',
    '250 2.1.5 ok',
    '354 go ahead',
  ])
  // The end of a message, byte by byte.
  for (const byte of '.\r\n') smtp.socket.write(byte)
  expect(await smtp.hear()).toBe('250 2.0.0 taken')
  expect(received.map(({ from, to, message }) => [from, to, message.toString()])).toEqual([
    ['a@b.example', ['here@x.example'], 'Subject: a\r\n\r\n.dot\r\nü\n.\nstill\r\n'],
    ['', ['here@y.example'], ''],
  ])
  expect(await smtp.say('QUIT')).toEqual(['221 2.0.0 bye'])
})

test('is no relay, and says what is wrong', async () => {
  const { received, connect } = await server()
  const smtp = await connect()
  expect(
    await smtp.say(
      'RCPT TO:<here@x.example>',
      'DATA',
      'MAIL FROM:a@b',
      'MAIL FROM:<a@b.example> SIZE=99999999',
      'MAIL FROM:<a@b.example>',
      'MAIL FROM:<a@b.example>',
      'RCPT TO:<elsewhere@x.example>',
      'RCPT TO:here@x.example',
      'DATA',
      'VRFY here',
      'AUTH PLAIN AGEAYg==',
      'STARTTLS',
      'what',
      '',
      'a\nb',
      'RSET',
    ),
  ).toEqual([
    '503 5.5.1 MAIL first',
    '503 5.5.1 RCPT first',
    '501 5.1.7 not an address',
    '552 5.3.4 too large',
    '250 2.1.0 ok',
    '503 5.5.1 one message at a time',
    '550 5.1.1 no such mailbox here',
    '501 5.1.3 not an address',
    '503 5.5.1 RCPT first',
    '252 2.1.5 cannot say',
    '502 5.5.1 not known here',
    '502 5.5.1 not known here',
    '502 5.5.1 not known here',
    '502 5.5.1 not known here',
    '500 5.5.2 not understood',
    '250 2.0.0 ok',
  ])
  expect(received).toEqual([])
})

describe('limits', () => {
  test('a message that is too large is read to its end, refused, and the next one taken', async () => {
    const { received, connect } = await server({ limits: { messageBytes: 1_000 } })
    const smtp = await connect()
    await smtp.say(...ENVELOPE)
    smtp.socket.write(`${'x'.repeat(2_000)}\r\n.\r\n`)
    expect(await smtp.hear()).toBe('552 5.3.4 too large')
    await smtp.say(...ENVELOPE)
    smtp.socket.write('small\r\n.\r\n')
    expect(await smtp.hear()).toBe('250 2.0.0 taken')
    expect(received).toHaveLength(1)
  })

  test('of recipients, mistakes and commands', async () => {
    const { connect } = await server({ limits: { recipients: 2, mistakes: 3, commands: 12 } })
    const smtp = await connect()
    const to = 'RCPT TO:<here@x.example>'
    expect((await smtp.say('HELO x', 'MAIL FROM:<>', to, to, to)).at(-1)).toBe('452 4.5.3 too many recipients')
    const tried = await smtp.say('x', 'x', 'x', 'x', 'x')
    expect(tried.at(-1)).toBe('421 4.7.0 mail.example too many commands')
    expect(await smtp.say('NOOP')).toEqual([''])
    const patient = await connect()
    const answers = await patient.say(...Array(13).fill('NOOP'))
    expect(answers.at(-1)).toBe('421 4.7.0 mail.example too many commands')
  })

  test('a command without an end is not waited for', async () => {
    const { connect } = await server()
    const smtp = await connect()
    smtp.socket.write('x'.repeat(5_000))
    expect(await smtp.hear()).toBe('')
  })

  test('of connections, of all and of one address', async () => {
    const { connect, listener } = await server({ limits: { connectionsOfOne: 2 } })
    await connect()
    await connect()
    const third = await connectSmtp(listener.port)
    expect(await third.hear()).toBe('')
    third.close()
  })

  test('who says nothing is not waited for', async () => {
    const { connect } = await server({ limits: { idleMs: 50 } })
    const smtp = await connect()
    expect(await smtp.hear()).toBe('421 4.4.2 mail.example timeout')
  })
})

test('says nothing good before the mail is taken, and asks for it again when it could not be', async () => {
  const order: string[] = []
  let fail = false
  const { connect } = await server({
    async take() {
      await new Promise((resolve) => setImmediate(resolve))
      order.push('taken')
      if (fail) throw new Error('the database is away')
    },
  })
  const smtp = await connect()
  await smtp.say(...ENVELOPE)
  smtp.socket.write('x\r\n.\r\n')
  order.push(await smtp.hear())
  fail = true
  await smtp.say(...ENVELOPE)
  smtp.socket.write('x\r\n.\r\n')
  order.push(await smtp.hear())
  expect(order).toEqual(['taken', '250 2.0.0 taken', 'taken', '451 4.3.0 try again later'])
})

test('answers what it is taking before it closes', async () => {
  let finish = () => {}
  let begun = () => {}
  const began = new Promise<void>((resolve) => {
    begun = resolve
  })
  const { connect, listener } = await server({
    take: () => {
      begun()
      return new Promise((resolve) => {
        finish = resolve
      })
    },
  })
  const smtp = await connect()
  await smtp.say(...ENVELOPE)
  smtp.socket.write('x\r\n.\r\n')
  await began
  const closed = listener.close()
  finish()
  expect(await smtp.hear()).toBe('250 2.0.0 taken')
  await closed
})
