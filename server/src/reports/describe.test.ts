// The words for what the engine decides, as it decides it.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Tenant, type TestApp, testApp } from '../../test/app.ts'
import {
  aMessage,
  anEmailPort,
  anEngine,
  closeRenderer,
  type FakeSender,
  fakeSender,
  type MessageDraft,
  only,
  type Recipient,
  recipients,
  runEngine,
} from '../../test/engine.ts'
import type { ChannelOutcome } from '../channels/channel.ts'
import { createMessageChannels } from '../composition/message-channels.ts'
import { suppressAddresses } from '../email/suppressions/store.ts'
import { type VirtualClock, virtualClock } from '../lib/clock.ts'
import type { Engine } from '../messages/engine/types.ts'
import { resumeServer } from '../sending/control-server.ts'
import { sql } from '../storage/sql.ts'
import { describeState } from './describe.ts'

let app: TestApp
let clock: VirtualClock
let sender: FakeSender
let engine: Engine
let tenant: Tenant
beforeAll(async () => {
  clock = virtualClock('2030-01-01T09:00:00Z')
  app = await testApp({ clock })
})
afterAll(async () => {
  await app.close()
  await closeRenderer()
})
beforeEach(async () => {
  sender = fakeSender()
  engine = anEngine({ db: app.db, clock, sender })
  tenant = await app.anotherTenant()
})

const ask = (path: string, request: object = {}) =>
  app.request(`/apps/${tenant.id}${path}`, { ...request, headers: { authorization: `Key ${tenant.key}` } })
const aPerson = async (draft?: Parameters<typeof recipients>[3]) =>
  (await recipients(engine, tenant.id, 1, draft))[0] as Recipient
const send = async (to: Recipient, draft: MessageDraft = {}) => {
  const id = await aMessage(engine, tenant.id, { lane: 'direct', audience: only(to.id), ...draft })
  await runEngine(engine)
  return id
}
const explain = async (id: string, to: Recipient) =>
  (await ask(`/messages/${id}/explain?subscription_id=${to.id}`)).body
const words = async (id: string, to: Recipient) => (await explain(id, to)).subscriptions[0].explanation

describe('what was decided without asking a provider', () => {
  const SKIPPED = 'It was decided not to send it'

  test('unsubscribed', async () => {
    const to = await aPerson()
    await ask(`/subscriptions/${to.id}`, { method: 'PATCH', body: { subscription: { enabled: false } } })
    expect(await words(await send(to), to)).toBe(`${SKIPPED}: the subscription was not subscribed.`)
  })

  test('no credentials', async () => {
    sender.ready = async () => new Set()
    const phone = await aPerson()
    expect(await words(await send(phone), phone)).toBe(
      `${SKIPPED}: the app has no credentials for the service that reaches it.`,
    )
  })

  test('a service that is not spoken to', async () => {
    const phone = await aPerson({ type: 'ChromeExtensionPush' })
    expect(await words(await send(phone), phone)).toBe(
      `${SKIPPED}: the server does not speak to the service that reaches it.`,
    )
  })

  test('mail from nobody, from a domain that may not send, or to an address that is left alone', async () => {
    const mailbox = await aPerson({ type: 'Email' })
    const mail = { channel: 'email', content: { isEmail: true, email_subject: 'Ring', email_body: 'Ring' } } as const
    const email = anEmailPort()
    engine.channels = createMessageChannels(email)
    email.defaultFrom = async () => undefined
    expect(await words(await send(mailbox, mail), mailbox)).toBe(
      `${SKIPPED}: neither the message nor the app says whom the mail is from.`,
    )
    email.defaultFrom = async () => ({ address: 'bells@example.com' })
    email.findSendingDomain = async () => undefined
    expect(await words(await send(mailbox, mail), mailbox)).toBe(
      `${SKIPPED}: the domain that the mail is from is not an active sending domain of the app.`,
    )
    await suppressAddresses(
      app.db,
      tenant.id,
      [{ address: mailbox.token.toLowerCase(), reason: 'manual' }],
      clock.now(),
    )
    expect(await words(await send(mailbox, mail), mailbox)).toBe(`${SKIPPED}: the address is on the suppression list.`)
  })

  test('a test, to somebody who is no test user', async () => {
    const to = await aPerson()
    expect(await words(await send(to, { options: { isTest: true } }), to)).toBe(
      `${SKIPPED}: the message is a test, and the user is no test user.`,
    )
  })

  test('the frequency cap', async () => {
    const cap = { channel: 'push', count: 1, window: 1, unit: 'hours' }
    await ask('/delivery_settings', { method: 'PUT', body: { frequency_caps: [cap] } })
    const to = await aPerson()
    expect(await words(await send(to), to)).toBe('The provider took it.')
    expect(await words(await send(to), to)).toBe(
      `${SKIPPED}: the user had got as many messages as the frequency cap lets through.`,
    )
  })

  test('quiet hours', async () => {
    const hours = { start: '08:00', end: '23:59', fallback_time_zone: 'UTC' }
    await ask('/delivery_settings', { method: 'PUT', body: { quiet_hours: hours } })
    const to = await aPerson()
    expect(await words(await send(to), to)).toBe('It waits until the quiet hours are over.')
    const short = await send(to, { options: { ttl: 60 } })
    expect(await words(short, to)).toBe('It was due in quiet hours, and lived no longer than they last.')
  })

  test('Liquid that cannot be rendered', async () => {
    const to = await aPerson()
    const contents = { en: '{% for i in (1..100000000) %}{{ i }}{% endfor %}' }
    expect(await words(await send(to, { content: { contents } }), to)).toBe(
      'It could not be made: its Liquid could not be rendered for this user.',
    )
  })

  test('what was given up after a restore', async () => {
    await app.db.query(sql`update server_sending set restored_at = ${clock.now()}`)
    const to = await aPerson()
    const id = await send(to)
    expect(await words(id, to)).toBe('It waits to be sent.')
    clock.advance({ minutes: 10 })
    await resumeServer({ db: app.db, now: clock.now }, 'discard')
    clock.advance({ minutes: 10 })
    await runEngine(engine)
    expect(await words(id, to)).toBe(`${SKIPPED}: what was due was given up after a restore.`)
    expect(await words(await send(to), to)).toBe('The provider took it.')
  })
})

const NOTHING = { reason: null, receivedAt: null, bouncedAt: null, openedAt: null }

test('what a crash broke off', () => {
  expect(describeState({ ...NOTHING, state: 'unknown', reason: 'interrupted' })).toBe(
    'It was being sent, and may have arrived or not. It is not sent again by itself: the server broke off while it was being sent.',
  )
})

describe('what a provider said', () => {
  test.each<[string, ChannelOutcome, string]>([
    [
      'the address is gone',
      { kind: 'gone', reason: 'Unregistered' },
      'The provider says that the address leads nowhere any more (gone: Unregistered).',
    ],
    ['refused', { kind: 'failed', reason: 'PayloadTooLarge' }, 'The provider refused it: PayloadTooLarge.'],
    ['not now', { kind: 'retry', reason: 'Shutdown' }, 'It waits to be sent again: Shutdown.'],
    [
      'no answer',
      { kind: 'unknown', reason: 'connection lost' },
      'It was being sent, and may have arrived or not. It is not sent again by itself: connection lost.',
    ],
  ])('%s', async (_, outcome, expected) => {
    const to = await aPerson()
    sender.script(to.token, outcome)
    expect(await words(await send(to), to)).toBe(expected)
  })

  test('nothing, and somebody closed it', async () => {
    const to = await aPerson()
    sender.script(to.token, { kind: 'unknown', reason: 'connection lost' })
    const id = await send(to)
    expect((await ask(`/messages/${id}/unknowns/close`, { body: {} })).status).toBe(200)
    expect(await words(id, to)).toBe('Nobody knew whether it arrived, and somebody closed it.')
  })

  test.each<[string, ChannelOutcome, string]>([
    [
      'that the credentials are wrong',
      { kind: 'misconfigured', reason: 'InvalidProviderToken' },
      'refuses the credentials of the app',
    ],
    [
      'that it needs a pause',
      { kind: 'retry', reason: 'TooManyRequests', afterMs: 600_000, pausesProvider: true },
      'takes nothing of the app',
    ],
  ])('%s: who asks why it waits is told until when', async (_, outcome, does) => {
    const to = await aPerson()
    sender.script(to.token, outcome)
    const [since, until] = [clock.now(), new Date(clock.now().getTime() + 600_000)]
    const id = await send(to)
    const reason = 'reason' in outcome ? outcome.reason : ''
    const { holds, subscriptions } = await explain(id, to)
    expect(holds).toEqual([
      `Apple ${does} since ${since.toISOString()}: ${reason}. It is asked again at ${until.toISOString()}.`,
    ])
    expect(subscriptions[0].explanation).toBe(`It waits to be sent again: ${reason}.`)
    clock.advance({ minutes: 10 })
    await runEngine(engine)
    expect((await explain(id, to)).holds).toEqual([])
    expect(await words(id, to)).toBe('The provider took it.')
  })
})

test('what came back of a mail since it was sent', () => {
  const sent = { ...NOTHING, state: 'sent' } as const
  const at = new Date()
  expect(describeState({ ...sent, openedAt: at })).toBe('The provider took it, and it was opened.')
  expect(describeState({ ...sent, bouncedAt: at })).toBe('The provider took it, and it came back later.')
})
