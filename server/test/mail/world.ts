// A whole server with mail around it: DNS, a real Postfix as its relay, mailboxes there, and a host behind it that refuses some.

import { expect, onTestFinished } from 'vitest'
import { certificateFor } from '../../src/sink/certificate.ts'
import { webhookService } from '../../src/sink/webhook.ts'
import { startDns, type TestDns } from '../dns.ts'
import { launch, printedKeys } from '../process/launch.ts'
import { startMailSink } from '../sinks/mail.ts'
import { startProvider } from '../sinks/scripted.ts'
import { freePort, HOST, startPostfix } from './postfix.ts'

export const DOMAIN = 'news.test'
const HELO = 'bell.test'
const HOOKS = 'hooks.test'
export const RELAY_ADDRESS = '192.0.2.7'

const names = (word: string, count: number, host: string) =>
  Array.from({ length: count }, (_, n) => `${word}${n + 1}@${host}`)

/** Where each mailbox is, and what becomes of mail to it. */
export const WORLD = {
  arriving: names('reader', 14, 'ok.test'),
  /** Refused at once. */
  unknown: names('nobody', 3, 'ok.test'),
  /** Taken by the relay; what the host behind it says then. */
  fine: names('fine', 2, 'late.test'),
  gone: names('gone', 4, 'late.test'),
  full: names('full', 3, 'late.test'),
  busy: names('busy', 2, 'late.test'),
  fullNow: names('brimful', 1, 'late.test'),
  unwanted: names('unwanted', 1, 'late.test'),
}
export const EVERYBODY = Object.values(WORLD).flat()
const { arriving, gone, full, busy, fullNow, unwanted } = WORLD
export const BOUNCED_LATER = [...gone, ...full, ...busy, ...fullNow, ...unwanted]

const BODY = `<html><body><h1>They ring</h1>
  <a href="https://shop.test/?a=1&amp;b=2">Shop</a> <a href="https://shop.test/zwei?ü=%20">Two</a>
  <a href="[unsubscribe_url]">Stop</a> <a href="[view_message_in_browser_url]">View</a>
</body></html>`

export type ToldEvent = { message_id: string; subscription_id: string; kind: string; reason: string | null }

export async function startWorld() {
  const dns = await startDns()
  onTestFinished(() => dns.close())
  dns.set(HOST, { a: [RELAY_ADDRESS] })
  dns.set('ok.test', { mx: [{ priority: 10, exchange: 'ok-test.mail.protection.outlook.com' }] })
  dns.set('late.test', { mx: [{ priority: 1, exchange: 'aspmx.l.google.com' }] })
  const host = await startMailSink()
  onTestFinished(() => host.close())
  const refuse = (addresses: readonly string[], at: 'rcpt' | 'taken', say: string) => {
    for (const address of addresses) host.script(address, { at, fault: { say } })
  }
  // At once, or when it has the whole mail.
  refuse(gone.slice(0, 2), 'rcpt', '550 5.1.1 No such user here')
  refuse(gone.slice(2), 'taken', '550 5.1.1 No such user here')
  refuse(full, 'rcpt', '552 5.2.2 Mailbox is full')
  refuse(busy, 'rcpt', '451 4.3.0 Try again later')
  refuse(fullNow, 'rcpt', '452 4.2.2 Mailbox is full')
  refuse(unwanted, 'taken', '554 5.7.1 We want none of this')

  const certificate = certificateFor(HOST, HOOKS)
  const events: ToldEvent[] = []
  const hooks = await startProvider({ hosts: [HOOKS], certificate }, () =>
    webhookService({ onReceived: ({ body }) => events.push(...JSON.parse(body).data.events) }),
  )
  onTestFinished(() => hooks.close())

  const [port, mailPort, relayPort] = [await freePort(), await freePort(), await freePort()]
  const server = await launch({
    env: {
      PORT: String(port),
      PUBLIC_URL: `http://127.0.0.1:${port}`,
      LIMITS: 'off',
      SMTP_URL: `smtp://${HOST}:${relayPort}?tls=starttls&pool=3`,
      PROVIDER_CONNECT: `smtp://${HOST}:${relayPort}=127.0.0.1:${relayPort},https://${HOOKS}=127.0.0.1:${hooks.port}`,
      PROVIDER_CA: certificate.cert,
      MAIL_LISTEN: `127.0.0.1:${mailPort}`,
      MAIL_HELO: HELO,
      RESOLVER: dns.address,
    },
  })
  const postfix = await startPostfix({
    port: relayPort,
    certificate,
    mailboxes: arriving.map((address) => address.split('@')[0] as string),
    transports: { 'late.test': host.port, [`bounce.${DOMAIN}`]: mailPort },
  })
  onTestFinished(() => postfix.stop())
  const url = await server.ready()
  const { appId, appKey, organizationKey } = printedKeys(server.out())

  async function ask(path: string, body?: unknown, key = appKey) {
    const answer = await fetch(`${url}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Key ${key}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    // biome-ignore lint/suspicious/noExplicitAny: an answer is read as the JSON it is; the assertions are its type
    return { status: answer.status, body: (await answer.json()) as any }
  }
  const app = (path: string, body?: unknown) => ask(`/apps/${appId}${path}`, body, organizationKey)
  expect((await app('/event_webhooks', { url: `https://${HOOKS}/`, kinds: ['bounced'] })).status).toBe(201)
  return {
    dns,
    host,
    postfix,
    server,
    events,
    url,
    appId,
    ask,
    app,
    asApp: (path: string) => ask(`/apps/${appId}${path}`),
  }
}
export type World = Awaited<ReturnType<typeof startWorld>>

/** As its owner does it: put into DNS what is shown, and have it looked at. */
export async function activateDomain({ app, dns }: World): Promise<void> {
  const added = await app('/email/domains', { domain: DOMAIN })
  expect(added).toMatchObject({ status: 201, body: { state: 'pending' } })
  for (const { type, name, value } of added.body.records) publish(dns, type, name, value)
  const verified = await app(`/email/domains/${DOMAIN}/verify`, {})
  expect(verified.body).toMatchObject({ state: 'active', activated_by: 'check' })
  expect(new Set(verified.body.records.map(({ state }: { state: string }) => state))).toEqual(new Set(['ok']))
}

function publish(dns: TestDns, type: string, name: string, value: string): void {
  const zone = dns.zones.get(name) ?? {}
  const [priority, exchange = ''] = value.split(' ')
  dns.set(name, type === 'MX' ? { ...zone, mx: [{ priority: Number(priority), exchange }] } : { ...zone, txt: [value] })
}

/** Of each subscription, whose it is. */
export async function subscribeAll({ ask, appId }: World): Promise<Map<string, string>> {
  const made = await Promise.all(
    EVERYBODY.map(async (address) => {
      const identity = { external_id: address }
      const { status, body } = await ask(`/apps/${appId}/users`, {
        identity,
        subscriptions: [{ type: 'Email', token: address }],
      })
      expect(status).toBe(201)
      return [body.subscriptions[0].id, address] as const
    }),
  )
  return new Map(made)
}

/** To everybody; `lost` are those who are subscribed no more. */
export async function send({ ask, appId }: World, lost: readonly string[] = []): Promise<string> {
  const { status, body } = await ask('/notifications', {
    app_id: appId,
    email_to: EVERYBODY,
    email_subject: 'Glöckchen',
    email_body: BODY,
    email_from_address: `tower@${DOMAIN}`,
    email_from_name: 'The tower',
  })
  const errors = lost.length === 0 ? undefined : { invalid_email_tokens: lost }
  expect({ status, errors: body.errors }).toEqual({ status: 200, errors })
  return body.id
}

export const view = async ({ ask, appId }: World, id: string) =>
  (await ask(`/notifications/${id}?app_id=${appId}`)).body
export const statsOf = async (world: World, id: string) => (await view(world, id)).platform_delivery_stats?.email ?? {}

/** What is counted, by inbox provider; counts of nothing are left out. */
export async function metrics({ asApp }: World, from: Date): Promise<Record<string, Record<string, number>>> {
  const window = `start=${from.toISOString()}&end=${new Date(Date.now() + 60_000).toISOString()}`
  const { body } = await asApp(`/email_analytics/provider_metrics?domain=${DOMAIN}&${window}`)
  type Entry = { provider: string; metrics: Record<string, number> }
  return Object.fromEntries(
    body.providers.map((it: Entry) => [
      it.provider,
      Object.fromEntries(Object.entries(it.metrics).filter(([, count]) => count > 0)),
    ]),
  )
}

export const mailOf = ({ postfix }: World, address: string) => postfix.mailOf(address.split('@')[0] as string)
export const countIn = async (world: World, addresses: readonly string[]) =>
  (await Promise.all(addresses.map((address) => mailOf(world, address)))).flat().length
