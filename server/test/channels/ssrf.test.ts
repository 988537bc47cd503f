// Addresses that lead inside, in every spelling, through every door that takes an address from a customer. Listeners on
// loopback count who gets through: nobody may.

import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAttachmentFetcher } from '../../src/channels/email/fetch-attachments.ts'
import { type Outbound, openOutbound } from '../../src/channels/outbound.ts'
import { isPublicAddress } from '../../src/channels/public-address.ts'
import { openTwilio } from '../../src/channels/sms/twilio.ts'
import { newWebhookSecret } from '../../src/channels/webhook/sign.ts'
import { openWebhooks } from '../../src/channels/webhook/webhook.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { newId } from '../../src/lib/ids.ts'
import { createLog } from '../../src/lib/log.ts'
import { startHttpSink } from '../sinks/http.ts'

/** Every name leads to what stands here; others are unknown. */
const NAMES: Record<string, string[]> = {
  'loopback.example': ['127.0.0.1'],
  'loopback6.example': ['::1'],
  'private.example': ['10.0.0.7'],
  'metadata.example': ['169.254.169.254'],
  'mapped.example': ['::ffff:127.0.0.1'],
  'nat64.example': ['64:ff9b::7f00:1'],
  'local6.example': ['fd00::1'],
  'any.example': ['0.0.0.0'],
  'several.example': ['93.184.215.14', '127.0.0.1'],
  'several6.example': ['2606:2800:21f:cb07:6820:80da:af6b:8b2c', '::1'],
  'broadcast.example': ['255.255.255.255'],
}

/** `PORT` is a canary's. */
const ADDRESSES = [
  // IPv4, in all its spellings
  'http://127.0.0.1:PORT/',
  'http://127.1:PORT/',
  'http://127.0.1:PORT/',
  'http://2130706433:PORT/',
  'http://0x7f000001:PORT/',
  'http://0x7f.0.0.1:PORT/',
  'http://0x7F.0x0.0x0.0x1:PORT/',
  'http://017700000001:PORT/',
  'http://0177.0.0.1:PORT/',
  'http://0177.0.0.01:PORT/',
  'http://00000177.0x0.0.1:PORT/',
  'http://127.0.0.1.:PORT/',
  'http://127.255.255.254:PORT/',
  'http://127.0.0.1:PORT@127.0.0.1:PORT/',
  'http://①②⑦.⓪.⓪.①:PORT/',
  'http://１２７.０.０.１:PORT/',
  'http://127。0。0。1:PORT/',
  'http://%31%32%37.0.0.1:PORT/',
  'http://127.0\n.0.1:PORT/',
  'http://127.0\u00ad.0.1:PORT/',
  'http:127.0.0.1:PORT/',
  'http:\\\\127.0.0.1:PORT\\',
  'http://0:PORT/',
  'http://0.0.0.0:PORT/',
  'http://0.1.2.3:PORT/',
  // Private, shared, link-local, special, multicast
  'http://10.0.0.1/',
  'http://10.255.255.255/',
  'http://100.64.0.1/',
  'http://100.127.255.254/',
  'http://169.254.169.254/latest/meta-data/',
  'http://2852039166/latest/meta-data/',
  'http://0xa9fea9fe/',
  'http://0251.0376.0251.0376/',
  'http://169.254.43518/',
  'http://172.16.0.1/',
  'http://172.31.255.255/',
  'http://192.0.0.1/',
  'http://192.0.2.1/',
  'http://192.88.99.1/',
  'http://192.168.0.1/',
  'http://3232235521/',
  'http://198.18.0.1/',
  'http://198.19.255.255/',
  'http://198.51.100.1/',
  'http://203.0.113.1/',
  'http://224.0.0.1/',
  'http://239.255.255.255/',
  'http://240.0.0.1/',
  'http://255.255.255.255/',
  // IPv6, and IPv4 inside of it
  'http://[::1]:PORT/',
  'http://[0:0:0:0:0:0:0:1]:PORT/',
  'http://[0000:0000:0000:0000:0000:0000:0000:0001]:PORT/',
  'http://[::]:PORT/',
  'http://[::ffff:127.0.0.1]:PORT/',
  'http://[::ffff:7f00:1]:PORT/',
  'http://[0:0:0:0:0:ffff:127.0.0.1]:PORT/',
  'http://[::127.0.0.1]:PORT/',
  'http://[::ffff:0:127.0.0.1]:PORT/',
  'http://[::ffff:10.0.0.1]/',
  'http://[::ffff:a9fe:a9fe]/',
  'http://[::ffff:93.184.215.14]/',
  'http://[64:ff9b::127.0.0.1]/',
  'http://[64:ff9b::10.0.0.1]/',
  'http://[64:ff9b:1::7f00:1]/',
  'http://[2002:7f00:1::]/',
  'http://[2002:a00:1::1]/',
  'http://[2002:a9fe:a9fe::1]/',
  'http://[2001:0:4136:e378:8000:63bf:80ff:fffe]/',
  'http://[2001:db8::1]/',
  'http://[2001:2::1]/',
  'http://[3fff::1]/',
  'http://[fc00::1]/',
  'http://[fd00:ec2::254]/',
  'http://[fe80::1]/',
  'http://[fe80::1%25lo]/',
  'http://[fec0::1]/',
  'http://[ff02::1]/',
  'http://[100::1]/',
  'http://[5f00::1]/',
  'http://[4000::1]/',
  // Names
  'http://localhost:PORT/',
  'http://LOCALHOST:PORT/',
  'http://localhost.:PORT/',
  'http://ⓛocalhost:PORT/',
  'http://foo.localhost:PORT/',
  ...Object.keys(NAMES).map((name) => `http://${name}:PORT/`),
  'http://loopback.example.:PORT/',
  'http://LOOPBACK.example:PORT/',
  // Who is asked is not who is named
  'http://user@127.0.0.1:PORT/',
  'http://93.184.215.14@127.0.0.1:PORT/',
  'http://user:password@93.184.215.14/',
  'http://127.0.0.1:PORT#@93.184.215.14/',
  'http://127.0.0.1:PORT\\@93.184.215.14/',
  // Ports
  'http://93.184.215.14:22/',
  'http://93.184.215.14:25/',
  'http://93.184.215.14:5432/',
  'http://93.184.215.14:6379/',
  'http://93.184.215.14:11211/',
  'https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]:9200/',
  'http://93.184.215.14:0/',
  // Schemes, and what is no address
  'file:///etc/passwd',
  'gopher://127.0.0.1:PORT/_GET',
  'data:text/plain,hello',
  'ftp://127.0.0.1:PORT/',
  'ws://127.0.0.1:PORT/',
  'unix:/var/run/docker.sock',
  'javascript:alert(1)',
  '//127.0.0.1:PORT/',
  '/etc/passwd',
  '',
  'http://',
  'http://[::1',
  'http://256.256.256.256/',
  'http://127.0.0.1:99999/',
  'http://exa mple.com/',
]

/** As they may stand in a setting that is no address of the web. */
const HOSTS = [
  '127.0.0.1',
  '127.1',
  '2130706433',
  '0x7f000001',
  '0x7f.1',
  '017700000001',
  '0177.0.0.1',
  '0',
  '0.0.0.0',
  'localhost',
  'LOCALHOST.',
  '::1',
  '0:0:0:0:0:0:0:1',
  '::',
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '::1%lo',
  '[::1]',
  'fe80::1%lo',
  '127.0.0.1 ',
  '127.0.0.1\0.example.com',
  '',
]

let canaries: { server: Server; connections: number }[]
let port: number
let outbound: Outbound
const lookups: string[] = []

beforeAll(async () => {
  port = 0
  canaries = []
  for (const host of ['127.0.0.1', '::1', '127.255.255.254']) {
    const canary = { server: createServer(), connections: 0 }
    canary.server.on('connection', (socket) => {
      canary.connections++
      socket.destroy()
    })
    canary.server.listen(port, host)
    await once(canary.server, 'listening')
    port = (canary.server.address() as AddressInfo).port
    canaries.push(canary)
  }
  outbound = openOutbound({
    allowHttp: true,
    timeoutMs: 2_000,
    async lookup(name) {
      lookups.push(name)
      const plain = name.replace(/\.$/, '').toLowerCase()
      const addresses = plain === 'localhost' || plain.endsWith('.localhost') ? ['127.0.0.1', '::1'] : NAMES[plain]
      if (!addresses) throw Object.assign(new Error(), { code: 'ENOTFOUND' })
      return addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
    },
  })
})
afterAll(async () => {
  await outbound.close()
  for (const { server } of canaries) server.close()
})

const asked = (address: string) => address.replaceAll('PORT', String(port))

describe('an address that leads inside', () => {
  test('there are many shapes of it', () => {
    expect(new Set(ADDRESSES).size).toBeGreaterThanOrEqual(120)
  })

  test.each(ADDRESSES)('%s is refused', async (address) => {
    const result = await outbound.request({ url: asked(address), body: '{}' })
    expect(result.kind).toBe('refused')
  })

  test('is refused through every door: as a webhook, as a file, as the address of a provider, as a message centre', async () => {
    const clock = systemClock()
    const webhooks = openWebhooks({ outbound, clock })
    const webhook = { id: 'msg_1', body: '{}', secrets: [newWebhookSecret()] }
    const outcomes = await webhooks.send(ADDRESSES.map((address) => ({ ...webhook, url: asked(address) })))
    expect(new Set(outcomes.map(({ kind }) => kind))).toEqual(new Set(['failed']))

    const files = createAttachmentFetcher({ outbound, clock, log: createLog('silent'), maxBytes: 1_000 })
    for (const address of ADDRESSES)
      expect(await files.fetch(newId(), newId(), [{ url: asked(address), name: 'a' }]), address).toMatchObject({
        kind: 'failed',
      })

    for (const address of ADDRESSES) {
      const provider = openTwilio({
        outbound,
        clock,
        accountSid: 'AC1',
        password: 'x',
        from: 'x',
        baseUrl: asked(address),
      })
      expect(await provider.send([{ to: '+15005550001', text: 'x' }]), address).toMatchObject([
        { kind: 'misconfigured' },
      ])
    }

    // Names as they are, to the system's own resolver, which knows old spellings too.
    const { dial, close } = openOutbound()
    for (const host of HOSTS) {
      const target = { host, port, isTls: false, origin: '', isPortAllowed: () => true, timeoutMs: 2_000 }
      await expect(dial(target), host).rejects.toThrow()
    }
    await close()
  })

  test('nobody got through to a listener', () => {
    expect(canaries.map(({ connections }) => connections)).toEqual([0, 0, 0])
  })

  test('the listeners would have seen them, had they been allowed', async () => {
    const allowing = openOutbound({ allowHttp: true, allow: ['127.0.0.1', '::1'], timeoutMs: 2_000 })
    await allowing.request({ url: asked('http://2130706433:PORT/') })
    await allowing.request({ url: asked('http://[0:0:0:0:0:0:0:1]:PORT/') })
    expect(await allowing.request({ url: asked('http://127.255.255.254:PORT/') })).toMatchObject({ kind: 'refused' })
    expect(canaries.map(({ connections }) => connections)).toEqual([1, 1, 0])
    for (const canary of canaries) canary.connections = 0
    await allowing.close()
  })

  test('https is all there is, unless a setting says otherwise', async () => {
    const strict = openOutbound({ allow: ['127.0.0.1'] })
    expect(await strict.request({ url: asked('http://127.0.0.1:PORT/') })).toEqual({
      kind: 'refused',
      reason: 'scheme not allowed',
    })
    await strict.close()
  })
})

describe('a name with several addresses', () => {
  test.each([
    ['127.0.0.2', '127.0.0.1'],
    ['127.0.0.1', '127.0.0.2'],
    ['127.0.0.2', '::1'],
    ['127.0.0.2', '127.0.0.2', '10.0.0.1'],
  ])('is refused when one of them leads inside: %s, %s', async (...addresses) => {
    const good = await startHttpSink(() => ({ status: 200 }), { host: '127.0.0.2' })
    const outbound = openOutbound({
      allowHttp: true,
      allow: ['127.0.0.2'],
      lookup: async () => addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    })
    const result = await outbound.request({ url: `http://several.example:${good.port}/` })
    expect(result).toEqual({ kind: 'refused', reason: 'address not allowed' })
    expect(good.connections()).toBe(0)
    await outbound.close()
    await good.stop()
  })
})

describe('a name whose answer changes', () => {
  test('is asked once for each connection, and dialed as it was judged', async () => {
    const good = await startHttpSink(() => ({ status: 200, headers: { connection: 'close' } }), { host: '127.0.0.2' })
    const inside = createServer((socket) => socket.destroy())
    let insideConnections = 0
    inside.on('connection', () => insideConnections++)
    inside.listen(good.port, '127.0.0.1')
    await once(inside, 'listening')
    let answers = 0
    const rebound = openOutbound({
      allowHttp: true,
      allow: ['127.0.0.2'],
      lookup: async () => [{ address: answers++ % 2 === 0 ? '127.0.0.2' : '127.0.0.1', family: 4 }],
    })
    const url = `http://rebind.example:${good.port}/`
    const kinds = []
    for (let i = 0; i < 6; i++) kinds.push((await rebound.request({ url })).kind)
    expect(kinds).toEqual(['answer', 'refused', 'answer', 'refused', 'answer', 'refused'])
    expect(answers).toBe(6)
    expect(insideConnections).toBe(0)
    await rebound.close()
    await good.stop()
    inside.close()
  })
})

describe('public addresses', () => {
  test.each([
    '1.1.1.1',
    '8.8.8.8',
    '9.255.255.255',
    '11.0.0.0',
    '93.184.215.14',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '128.0.0.1',
    '169.253.255.255',
    '172.15.255.255',
    '172.32.0.0',
    '192.0.1.0',
    '192.167.255.255',
    '198.17.255.255',
    '198.20.0.0',
    '223.255.255.255',
    '2001:200::1',
    '2001:4860:4860::8888',
    '2003::1',
    '2606:4700:4700::1111',
    '2a00:1450:4001:81b::200e',
    '3ffe::1',
  ])('%s is one', (address) => {
    expect(isPublicAddress(address)).toBe(true)
  })

  test.each([
    '',
    'localhost',
    '127.0.0.1',
    '1.1.1',
    '2606:4700::1%eth0',
    '::ffff:1.1.1.1',
    '64:ff9b::1.1.1.1',
    '1.1.1.1/8',
  ])('%s is none', (address) => {
    expect(isPublicAddress(address)).toBe(false)
  })
})
