import { expect, test } from 'vitest'
import type { EmailItem } from '../channels/email/message.ts'
import { systemClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import type { OutgoingMessage } from '../messages/outgoing-message.ts'
import { createSenders } from './senders.ts'

test('what was never handed to a provider, because the credentials could not be read, may be tried again', async () => {
  const isAway = async () => {
    throw new Error('the database is away')
  }
  const senders = createSenders({
    clock: systemClock(),
    providers: { route: {}, vapidSubject: 'mailto:bells@example.com' },
    openPushSettings: isAway,
    findTexts: isAway,
    findMail: isAway,
  })
  const text: OutgoingMessage = {
    kind: 'sms',
    platform: 'SMS',
    token: '+15550001000',
    content: { messageId: newId(), from: '+15550002000', text: 'Bells', mediaUrls: [] },
  }
  const again = { kind: 'retry', reason: 'credentials could not be read' }
  expect(await senders.send(newId(), { provider: 'sms', lane: 'bulk' }, [text, text])).toEqual([again, again])
  expect(await senders.send(newId(), { provider: 'web-push', lane: 'bulk' }, [text])).toEqual([again])
  await senders.close()
})

test('a mail is handed to the channel of its app as it was put together, and mail can always be sent', async () => {
  const given: EmailItem[] = []
  const appId = newId()
  const senders = createSenders({
    clock: systemClock(),
    providers: { route: {}, vapidSubject: 'mailto:bells@example.com' },
    openPushSettings: async () => undefined,
    findTexts: async () => undefined,
    findMail: async (of) => ({
      channel: {
        async send(items) {
          expect(of).toBe(appId)
          given.push(...items)
          return items.map((_, i) =>
            i === 0 ? { kind: 'sent' } : { kind: 'retry', reason: 'slowed', wasNotAttempted: true },
          )
        },
        close: async () => {},
      },
    }),
  })
  expect(await senders.ready(appId)).toEqual(new Set(['email']))
  const content = { from: { address: 'bells@example.com' }, subject: 'Bells', html: [''], text: [''], headers: [] }
  const envelope = {
    reference: 'r',
    referenceFor: () => 'r',
    messageIdHeader: '<1@example.com>',
    envelopeFrom: 'b-r@bounces.example.com',
    date: new Date('2030-01-01T09:00:00Z'),
    dkim: [],
    inboxProvider: 'other',
  }
  const mail = (token: string): OutgoingMessage => ({ kind: 'email', platform: 'Email', token, content, ...envelope })
  const source = { appId, lane: 'direct' } as const
  const line = { provider: 'email', lane: 'direct' } as const
  expect(await senders.send(appId, line, [mail('ann@example.com'), mail('bob@example.com')])).toEqual([
    { kind: 'sent' },
    { kind: 'retry', reason: 'slowed', wasNotAttempted: true },
  ])
  expect(given).toMatchObject([
    { content, to: 'ann@example.com', source, ...envelope },
    { content, to: 'bob@example.com', source, ...envelope },
  ])
  expect(given[0]?.content).toBe(given[1]?.content)
  await senders.close()
})
