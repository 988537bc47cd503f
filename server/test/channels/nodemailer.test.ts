// The mail sink, judged by a client that shares nothing with ours.

import { createTransport } from 'nodemailer'
import { expect, onTestFinished, test } from 'vitest'
import { type MailSinkSettings, startMailSink } from '../sinks/mail.ts'

const NAME = 'relay.example.com'
const auth = { user: 'me', password: 'secret' }

async function started(settings: MailSinkSettings, options: object = {}) {
  const sink = await startMailSink(settings)
  onTestFinished(() => sink.close())
  const transport = createTransport({
    host: '127.0.0.1',
    port: sink.port,
    tls: { ca: sink.route.ca, servername: NAME },
    ...options,
  })
  onTestFinished(() => transport.close())
  const send = (to = 'a@example.net') =>
    transport.sendMail({
      from: 'news@example.com',
      to,
      subject: 'Grüße 🎉',
      text: '.They ring ä\n.\nand ring',
      html: '<p>They ring</p>',
      dsn: { id: 'e1', return: 'headers', notify: ['failure'], recipient: 'a@example.net' },
    })
  return { sink, send }
}

test.each([
  ['in the clear', {}, {}],
  ['with STARTTLS and a password', { name: NAME, auth }, { requireTLS: true, auth: { user: 'me', pass: 'secret' } }],
  ['signing in by LOGIN', { name: NAME, auth }, { authMethod: 'LOGIN', auth: { user: 'me', pass: 'secret' } }],
  ['over TLS', { name: NAME, isImplicit: true }, { secure: true }],
  ['without pipelining', { without: ['PIPELINING'] }, {}],
])('takes what it sends %s', async (_, settings, options) => {
  const { sink, send } = await started(settings, options)
  expect((await send()).response).toMatch(/^250 /)
  const [got] = sink.received
  expect(got?.mail).toMatchObject({
    subject: 'Grüße 🎉',
    text: expect.stringContaining('.They ring ä\r\n.\r\nand ring'),
  })
  expect(got).toMatchObject({ from: 'news@example.com', recipients: ['a@example.net'], isSecret: 'name' in settings })
})

test('tells it what went wrong, at each stage', async () => {
  const { sink, send } = await started({})
  for (const [at, say] of [
    ['rcpt', '550 5.1.1 nobody'],
    ['data', '451 4.3.0 later'],
    ['taken', '554 5.7.1 spam'],
  ] as const) {
    sink.script('a@example.net', { at, fault: { say } })
    await expect(send()).rejects.toMatchObject({ responseCode: Number(say.slice(0, 3)) })
  }
  sink.script('a@example.net', { at: 'taken', fault: 'cut' })
  await expect(send()).rejects.toThrow()
  expect(sink.taken.get('a@example.net')).toBe(1)
  await expect(send('b@example.net')).resolves.toBeDefined()
})

test('lets nobody in with a wrong password', async () => {
  const { sink, send } = await started({ name: NAME, auth }, { auth: { user: 'me', pass: 'wrong' } })
  await expect(send()).rejects.toMatchObject({ responseCode: 535 })
  expect(sink.received).toEqual([])
})
