// Our mail through a server of the world, to a host behind it.

import { generateKeyPairSync } from 'node:crypto'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import PostalMime from 'postal-mime'
import { expect, onTestFinished, test } from 'vitest'
import { createDial } from '../../src/channels/dial.ts'
import type { EmailItem } from '../../src/channels/email/message.ts'
import { openRelayChannel } from '../../src/channels/email/relay.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { fillPieces } from '../../src/lib/placeholders.ts'
import { freePort, HOST, needPostfix, startPostfix } from '../mail/postfix.ts'
import { startMailSink } from '../sinks/mail.ts'
import { aMail, CONTENT } from './subjects/mail.ts'

test('Postfix takes our mail, and what arrives is whole and signed; whom it does not know is gone', async ({
  skip,
}) => {
  needPostfix(skip)
  const host = await startMailSink()
  onTestFinished(() => host.close())
  const postfix = await startPostfix({ port: await freePort(), transports: { 'behind.test': host.port } })
  onTestFinished(() => postfix.stop())
  const clock = systemClock()
  const channel = openRelayChannel({
    dial: createDial({
      route: { ca: postfix.ca, connect: { [`smtp://${HOST}:587`]: { host: '127.0.0.1', port: postfix.port } } },
    }),
    host: HOST,
    port: 587,
    tls: 'starttls',
    helo: 'carillon.example.com',
    clock,
    connections: 3,
  })
  onTestFinished(() => channel.close())
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const key = { domain: 'example.com', selector: 's1', algorithm: 'rsa', privateKey: rsa.privateKey } as const
  const mail = (changes: Partial<EmailItem>) => aMail({ dkim: [key], date: clock.now(), ...changes })

  const items = Array.from({ length: 30 }, (_, n) => mail({ to: `user${n}@behind.test` }))
  const unicode = mail({ to: 'jörg@behind.test' })
  const outcomes = await channel.send([...items, mail({ to: 'nobody@ok.test' }), unicode])
  expect(outcomes.slice(0, 30)).toEqual(items.map(() => ({ kind: 'sent', id: expect.stringMatching(/^[\w-]{5,}$/) })))
  expect(outcomes[30]).toEqual({ kind: 'gone', reason: 'hard_bounce' })
  expect(outcomes[31]?.kind).toBe('sent')

  const public64 = rsa.publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
  const resolver = async () => [[`v=DKIM1; k=rsa; p=${public64}`]]
  await expect.poll(() => host.received.length, { timeout: 15_000 }).toBe(31)
  expect(new Set(host.received.flatMap(({ recipients }) => recipients))).toEqual(
    new Set([...items, unicode].map(({ to }) => to)),
  )
  for (const item of [items[0], items[29], unicode] as EmailItem[]) {
    const got = host.received.find(({ recipients }) => recipients.includes(item.to))
    const message = got?.source ?? Buffer.alloc(0)
    expect((await dkimVerify(message, { resolver })).results.map(({ status }) => status.result)).toEqual(['pass'])
    const read = await PostalMime.parse(message)
    expect(read).toMatchObject({ subject: CONTENT.subject, from: CONTENT.from, messageId: item.messageIdHeader })
    expect(read.html?.trimEnd()).toBe(fillPieces(CONTENT.html, item.referenceFor))
    expect(got?.from).toBe(item.envelopeFrom)
  }
})
