import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { type Tenant, type TestApp, testApp } from '../../test/app.ts'
import { anEmailContext } from '../../test/email.ts'
import { anId, told } from '../../test/users.ts'
import { createDial } from '../channels/dial.ts'
import type { EmailItem } from '../channels/email/message.ts'
import type { EmailRelay, ServerEmail } from '../email/context.ts'
import { deleteExpiredCaught } from '../email/mailbox/catch-email.ts'
import { virtualClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { lanes } from '../messages/message.ts'
import { listenSmtp, type MailServer } from '../sink/email/smtp.ts'
import { sql } from '../storage/sql.ts'
import { createMailChannels, type MailChannels } from './email-channels.ts'

const clock = virtualClock('2030-01-01T09:00:00Z')
let server: TestApp
let tenant: Tenant
let relay: MailServer
let received: { to: readonly string[]; subject: string }[]
const opened: MailChannels[] = []
beforeAll(async () => {
  server = await testApp({ clock })
  relay = await listenSmtp({
    async take({ recipients: to, mail: { subject } }) {
      received.push({ to, subject })
      return true
    },
  })
})
afterAll(async () => {
  await Promise.all(opened.map((it) => it.close()))
  await server.close()
  await relay.close()
})
beforeEach(async () => {
  received = []
  clock.advance({ hours: 1 })
  tenant = await server.anotherTenant()
})

function channelsWith(way: ServerEmail['route']) {
  const email = anEmailContext({ db: server.db, clock, serverEmail: { route: way, helo: 'mail.bell.example' } })
  const channels = createMailChannels({
    email,
    clock,
    dial: createDial({}),
    dialOwn: createDial({ allow: ['0.0.0.0/0', '::/0'] }),
    resolveMx: () => Promise.reject(Object.assign(new Error('none'), { code: 'ENOTFOUND' })),
  })
  opened.push(channels)
  return channels
}

const relayHere = (): EmailRelay & { isCatcher: boolean } => ({
  host: '127.0.0.1',
  port: relay.port,
  tls: 'opportunistic',
  connections: 2,
  isCatcher: false,
})

const aMail = (to: string, more: Partial<EmailItem['content']> = {}): EmailItem => ({
  content: {
    from: { name: 'Shop', address: 'shop@shop.example' },
    subject: 'Glöckchen läuten',
    html: ['<p>Hello ', 'ref', '</p>'],
    text: ['Hello ', 'ref', ''],
    headers: [],
    ...more,
  },
  reference: 'ref1',
  referenceFor: () => 'ref1',
  to,
  messageIdHeader: '<1@shop.example>',
  envelopeFrom: 'b-ref1@bounce.shop.example',
  date: clock.now(),
  dkim: [],
  inboxProvider: 'other',
  source: { appId: tenant.id, lane: 'bulk' },
})

const mailbox = (path = '', more: { method?: string } = {}) =>
  server.request(`/apps/${tenant.id}/email/mailbox${path}`, {
    ...more,
    headers: { authorization: `Key ${tenant.key}` },
  })
const summaries = async (query = '') => (await mailbox(query)).body.mails

describe('with nothing set', () => {
  test('mail is caught and shown', async () => {
    const { channel, isCaught } = await channelsWith(undefined).open(tenant.id)
    expect(isCaught).toBe(true)
    const messageId = newId()
    const headers = [['Feedback-ID', [`${messageId}:${tenant.id}:other:carillon`]]] as const
    expect(await channel.send([aMail('Ann@example.com', { headers }), aMail('bob@example.com')])).toEqual([
      { kind: 'sent' },
      { kind: 'sent' },
    ])
    const all = await summaries()
    expect(all).toHaveLength(2)
    const [ann] = await summaries('?to=ann@EXAMPLE.com')
    expect(ann).toEqual({
      id: anId(),
      at: clock.now().toISOString(),
      from: 'shop@shop.example',
      to: 'Ann@example.com',
      subject: 'Glöckchen läuten',
      message_id: messageId,
    })
    const { body } = await mailbox(`/${ann.id}`)
    expect(body).toMatchObject({ ...ann, html: '<p>Hello ref1</p>', text: 'Hello ref1' })
    expect(body.headers).toContainEqual({ name: 'Subject', value: 'Glöckchen läuten' })
    expect(body.raw).toContain('\r\nSubject: =?')
  })

  test('a copy is caught as well, as the one who gets it would find it', async () => {
    const { channel } = await channelsWith(undefined).open(tenant.id)
    const mails = [
      { ...aMail('ann@example.com'), bcc: ['archive@example.com', 'boss@example.com'] },
      aMail('bob@example.com'),
    ]
    expect(await channel.send(mails)).toEqual([{ kind: 'sent' }, { kind: 'sent' }])
    const all: { id: string; to: string }[] = await summaries()
    expect(all.map(({ to }) => to).sort()).toEqual([
      'ann@example.com',
      'archive@example.com',
      'bob@example.com',
      'boss@example.com',
    ])
    const rawOf = async (address: string) =>
      (await mailbox(`/${all.find(({ to }) => to === address)?.id}`)).body.raw as string
    expect(await rawOf('archive@example.com')).toBe(await rawOf('ann@example.com'))
    expect(await rawOf('ann@example.com')).not.toContain('archive@example.com')
  })

  test('the mailbox is read page by page, emptied, and is the app’s own', async () => {
    const { channel } = await channelsWith(undefined).open(tenant.id)
    for (let n = 0; n < 5; n++) {
      await channel.send([aMail(`n${n}@example.com`)])
      clock.advance({ seconds: 1 })
    }
    const first = (await mailbox('?limit=3')).body
    const second = (await mailbox(`?limit=3&cursor=${first.next_cursor}`)).body
    expect([...first.mails, ...second.mails].map(({ to }: { to: string }) => to)).toEqual(
      [4, 3, 2, 1, 0].map((n) => `n${n}@example.com`),
    )
    expect(second.next_cursor).toBeNull()
    expect((await mailbox('?cursor=x')).status).toBe(400)
    const mine = tenant
    tenant = await server.anotherTenant()
    expect(told(await mailbox(`/${first.mails[0].id}`))).toEqual({ status: 404, body: { errors: ['Mail not found'] } })
    tenant = mine
    expect((await mailbox('', { method: 'DELETE' })).body).toEqual({ deleted: 5 })
    expect(await summaries()).toEqual([])
  })

  test('the newest 1,000 are kept, for 7 days', async () => {
    const insert = (count: number, at: Date) =>
      server.db.query(sql`
        insert into caught_mail (app_id, id, at, from_address, to_address, subject, raw)
        select ${tenant.id}, gen_random_uuid(), ${at}::timestamptz + n * interval '1 ms', 'a@b.example', 'c@d.example', n::text, ''
        from generate_series(1, ${count}::integer) n`)
    const left = async () =>
      (
        await server.db.query<{ subject: string }>(
          sql`select subject from caught_mail where app_id = ${tenant.id} order by at`,
        )
      ).map(({ subject }) => Number(subject))
    await insert(1_003, clock.now())
    await deleteExpiredCaught(server.db, clock.now())
    expect((await left())[0]).toBe(4)
    expect(await left()).toHaveLength(1_000)
    // A large send makes room by itself.
    const { channel } = await channelsWith(undefined).open(tenant.id)
    clock.advance({ minutes: 1 })
    await channel.send(Array.from({ length: 200 }, () => aMail('x@example.com', { subject: '0' })))
    expect(await left()).toHaveLength(1_000)
    clock.advance({ days: 8 })
    await deleteExpiredCaught(server.db, clock.now())
    expect(await left()).toEqual([])
  })
})

describe('with a relay', () => {
  test('apps share the server’s, and a catcher takes any domain', async () => {
    const channels = channelsWith(relayHere())
    const [one, two] = [tenant, await server.anotherTenant()]
    const mails = await Promise.all([channels.open(one.id), channels.open(two.id)])
    expect(mails).toMatchObject([{ isCaught: false }, { isCaught: false }])
    expect(await mails[0]?.channel.send([aMail('ann@example.com')])).toMatchObject([{ kind: 'sent' }])
    expect(await mails[1]?.channel.send([aMail('bob@example.com')])).toMatchObject([{ kind: 'sent' }])
    expect(received).toEqual([
      { to: ['ann@example.com'], subject: 'Glöckchen läuten' },
      { to: ['bob@example.com'], subject: 'Glöckchen läuten' },
    ])
    const catcher = { ...relayHere(), isCatcher: true }
    expect((await channelsWith(catcher).open(one.id)).isCaught).toBe(true)
  })

  test('is given as many connections as it is said to take, where several apps have mail for it', async () => {
    const three = Promise.withResolvers<void>()
    let held = 0
    const own = await listenSmtp({
      async take() {
        if (++held === 3) three.resolve()
        await Promise.race([three.promise, new Promise((go) => setTimeout(go, 2_000))])
        return true
      },
    })
    onTestFinished(() => own.close())
    const channels = channelsWith({ ...relayHere(), port: own.port, connections: 3 })
    const { channel } = await channels.open(tenant.id)
    const sources = [tenant.id, newId(), newId()].flatMap((appId) => lanes.map((lane) => ({ appId, lane })))
    const mails = sources.flatMap((source) =>
      Array.from({ length: 2 }, (_, n) => ({ ...aMail(`n${n}@example.com`), source })),
    )
    expect(await channel.send(mails)).toEqual(Array(12).fill({ kind: 'sent' }))
    expect(own.open()).toBe(3)
  })

  test('is given as many mails in a second as it is said to take', async () => {
    const { channel } = await channelsWith({ ...relayHere(), perSecond: 20 }).open(tenant.id)
    const began = performance.now()
    const outcomes = await channel.send(Array.from({ length: 16 }, (_, n) => aMail(`n${n}@example.com`)))
    expect(outcomes).toEqual(Array(16).fill({ kind: 'sent' }))
    expect(performance.now() - began).toBeGreaterThan(600)
  })

  test('an app’s own may not be in a network that nobody allowed', async () => {
    const channels = channelsWith(undefined)
    const name = 'relay.invalid'
    await server.request(`/apps/${tenant.id}/email/settings`, {
      method: 'PUT',
      body: { relay: { host: name } },
      headers: { authorization: `Key ${tenant.key}` },
    })
    const { channel, isCaught } = await channels.open(tenant.id)
    expect(isCaught).toBe(false)
    // Past the check of the interface, as a name that leads inside would be.
    await server.db.query(sql`
      update apps set email_settings = jsonb_set(email_settings, '{relay,host}', '"127.0.0.1"') where id = ${tenant.id}`)
    channels.forget(tenant.id)
    const inside = await channels.open(tenant.id)
    expect(await inside.channel.send([aMail('ann@example.com')])).toMatchObject([
      { kind: expect.not.stringMatching('sent') },
    ])
    expect(received).toEqual([])
    expect(channel).not.toBe(inside.channel)
  })

  test('a change takes effect when it is announced, at the latest after a minute', async () => {
    const channels = channelsWith(undefined)
    const put = (body: object) =>
      server.request(`/apps/${tenant.id}/email/settings`, {
        method: 'PUT',
        body,
        headers: { authorization: `Key ${tenant.key}` },
      })
    expect((await channels.open(tenant.id)).isCaught).toBe(true)
    await put({ relay: { host: 'relay.example.com' } })
    expect((await channels.open(tenant.id)).isCaught).toBe(true)
    channels.forget(tenant.id)
    expect((await channels.open(tenant.id)).isCaught).toBe(false)
    await put({ mode: null })
    channels.forget()
    expect((await channels.open(tenant.id)).isCaught).toBe(true)
  })
})
