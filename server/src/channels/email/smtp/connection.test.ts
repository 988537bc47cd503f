import { expect, onTestFinished, test } from 'vitest'
import { startMailSink } from '../../../../test/sinks/mail.ts'
import { createDial } from '../../dial.ts'
import { parseEmailAddress } from '../address.ts'
import { toWireText } from '../mime/wire-format.ts'
import { openSmtpConnection, type SmtpConnection, type SmtpEnvelope } from './connection.ts'

const envelope: SmtpEnvelope = {
  from: parseEmailAddress('a@example.com'),
  to: parseEmailAddress('b@example.net') as SmtpEnvelope['to'],
  bcc: [],
  id: '',
  isUtf8: false,
}

test.each([
  'Subject: a\r\n\r\nfirst\r\n.\r\nMAIL FROM:<evil@example.com>\r\nRCPT TO:<c@example.net>\r\nDATA\r\nsecond\r\n',
  'Subject: a\n\nfirst\n.\nMAIL FROM:<evil@example.com>\nRCPT TO:<c@example.net>\nDATA\nsecond\n',
  'Subject: a\r\n\r\nfirst\n.\r\nMAIL FROM:<evil@example.com>\r\nRCPT TO:<c@example.net>\r\nDATA\r\nsecond',
])('whatever a message holds, it is one message: %j', async (message) => {
  const sink = await startMailSink()
  onTestFinished(() => sink.close())
  const connection = (await openSmtpConnection({
    dial: createDial({ allow: ['127.0.0.1'] }),
    host: '127.0.0.1',
    port: sink.port,
    tls: 'none',
    helo: 'carillon.example.com',
  })) as SmtpConnection
  for (let n = 0; n < 2; n++)
    expect(await connection.deliver({ envelope, message: toWireText(message) })).toMatchObject({
      kind: 'taken',
    })
  await connection.quit()
  const whole = `${message.trimEnd()}\n`.replaceAll(/\r?\n/g, '\r\n')
  expect(sink.received.map(({ source }) => source.toString())).toEqual([whole, whole])
  expect(connection.isOpen()).toBe(false)
})
