// A message by mail, from the request to the mailbox and back. What is counted is what was sent.

import { createTransport } from 'nodemailer'
import { expect, test } from 'vitest'
import { until } from '../process/launch.ts'
import { HOST, needPostfix } from './postfix.ts'
import { judge, type ReadMail, read } from './received.ts'
import {
  activateDomain,
  BOUNCED_LATER,
  countIn,
  DOMAIN,
  EVERYBODY,
  mailOf,
  metrics,
  RELAY_ADDRESS,
  send,
  startWorld,
  statsOf,
  subscribeAll,
  view,
  WORLD,
} from './world.ts'

const { arriving, unknown, fine, gone, full, busy, fullNow, unwanted } = WORLD

test('a message arrives by mail at those who can be reached, and all others come back to be counted', async ({
  skip,
}) => {
  needPostfix(skip)
  const world = await startWorld()
  const { host, postfix, dns, app, asApp } = world
  await activateDomain(world)
  const whose = await subscribeAll(world)
  const began = new Date()
  const id = await send(world)
  const settled = async () => {
    const { bounced } = await statsOf(world, id)
    // What follows from a report is done after it was counted, and before its bearer hears that it was taken.
    const { suppressions } = (await app('/email/suppressions')).body
    if (suppressions.length < unknown.length + gone.length) return false
    return bounced === unknown.length + BOUNCED_LATER.length && (await countIn(world, arriving)) === arriving.length
  }
  await until(settled).catch(async (error) => {
    throw new Error(`${error.message}\n${JSON.stringify(await view(world, id))}\n${await postfix.log()}`)
  })

  // ---- Each delivery is as it should be.
  const { body: page } = await asApp(`/messages/${id}/deliveries?limit=100`)
  expect(page.deliveries).toHaveLength(EVERYBODY.length)
  const now = Date.now()
  for (const it of page.deliveries) {
    const address = whose.get(it.subscription_id) as string
    const isAtOnce = unknown.includes(address)
    const isBounced = isAtOnce || BOUNCED_LATER.includes(address)
    expect({ address, ...it }).toMatchObject({
      state: isAtOnce ? 'failed' : 'sent',
      reason: isAtOnce ? 'gone: hard_bounce' : null,
      attempts: 1,
      inbox_provider: address.endsWith('@ok.test') ? 'outlook_365' : 'google_workspace',
      delivered_at: isAtOnce ? null : expect.any(String),
      bounced_at: isBounced ? expect.any(String) : null,
      opened_at: null,
      complained_at: null,
    })
    const times = [it.settled_at, it.delivered_at, it.bounced_at].filter(Boolean).map((time) => Date.parse(time))
    expect(Math.min(...times)).toBeGreaterThanOrEqual(began.getTime())
    expect(Math.max(...times)).toBeLessThanOrEqual(now)
    if (it.delivered_at && it.bounced_at) expect(it.bounced_at >= it.delivered_at).toBe(true)
  }

  // ---- Whoever is not there is left alone from now on, with what was said of them; the others are not.
  const { body: list } = await app('/email/suppressions')
  const suppressed = new Map(list.suppressions.map((it: { address: string }) => [it.address, it]))
  expect([...suppressed.keys()].sort()).toEqual([...unknown, ...gone].sort())
  for (const address of gone)
    expect(suppressed.get(address)).toMatchObject({
      reason: 'hard_bounce',
      detail: expect.stringMatching(/^550 5\.1\.1 No such user here/),
    })
  for (const address of EVERYBODY) {
    const { body: user } = await asApp(`/users/by/external_id/${address}`)
    const isLost = unknown.includes(address) || gone.includes(address)
    expect({ address, ...user.subscriptions[0] }).toMatchObject({ notification_types: isLost ? -10 : 1 })
  }

  // ---- Each is told as what it was.
  await until(() => world.events.length >= unknown.length + BOUNCED_LATER.length)
  const told = world.events.map((it) => [whose.get(it.subscription_id), it.message_id, it.kind, it.reason])
  const as = (addresses: readonly string[], reason: string) => addresses.map((it) => [it, id, 'bounced', reason])
  expect(told.sort()).toEqual(
    [
      ...as([...unknown, ...gone], 'hard_bounce'),
      ...as([...full, ...fullNow], 'mailbox_full'),
      ...as(busy, 'soft_bounce'),
      ...as(unwanted, 'blocked'),
    ].sort(),
  )

  // ---- The counts are those of what was sent.
  const late = fine.length + BOUNCED_LATER.length
  expect(await metrics(world, began)).toEqual({
    outlook_365: { sent: arriving.length + unknown.length, delivered: arriving.length, bounced: unknown.length },
    google_workspace: { sent: late, delivered: late, bounced: BOUNCED_LATER.length },
  })
  const viewed = await view(world, id)
  expect(viewed).toMatchObject({ successful: arriving.length + late, failed: unknown.length, errored: 0, remaining: 0 })
  expect(viewed.delivery.states).toEqual(expect.objectContaining({ sent: 27, failed: 3 }))
  expect(viewed.platform_delivery_stats.email).toMatchObject({ delivered: 27, bounced: 14, opened: 0, unsubscribed: 0 })
  expect(host.received.flatMap(({ recipients }) => recipients).sort()).toEqual(fine)

  // ---- Each mail is what was written, came over TLS, and is vouched for.
  const references = new Set<string>()
  for (const address of arriving) {
    const [source = Buffer.alloc(0), ...others] = await mailOf(world, address)
    expect(others).toEqual([])
    const mail = await read(source)
    expect(mail).toMatchObject({
      subject: 'Glöckchen',
      from: { name: 'The tower', address: `tower@${DOMAIN}` },
      to: [{ address }],
    })
    const sender = mail.header('return-path').replaceAll(/[<>]/g, '')
    const [, reference = ''] = /^b-([a-z2-7]{55})@bounce\.news\.test$/.exec(sender) ?? []
    references.add(reference)
    expect(mail.header('received')).toMatch(/^from bell\.test .*using TLSv1\.[23] .* with ESMTPS/s)
    const unsubscribe = mail.links.get('Stop') ?? ''
    const [, stop = ''] = /\/e\/u\/([a-z2-7]{55})$/.exec(unsubscribe) ?? []
    expect(unsubscribe).toBe(`${world.url}/e/u/${stop}`)
    expect(mail.header('list-unsubscribe')).toBe(`<${unsubscribe}>, <mailto:u-${stop}@bounce.${DOMAIN}>`)
    expect(mail.header('list-unsubscribe-post')).toBe('List-Unsubscribe=One-Click')
    expect(mail.images).toEqual([expect.stringMatching(/\/e\/o\/[a-z2-7]{55}\.gif$/)])
    expect([reference, stop].some((other) => mail.images[0]?.includes(other))).toBe(false)

    const judged = await judge(source, { ip: RELAY_ADDRESS, helo: HOST, sender }, dns.address)
    expect(judged.dkim.map(({ algorithm }) => algorithm).sort()).toEqual(['ed25519-sha256', 'rsa-sha256'])
    for (const signature of judged.dkim) {
      expect(signature).toMatchObject({ result: 'pass', domain: DOMAIN, aligned: DOMAIN })
      expect(signature.headers).toEqual(expect.arrayContaining(['from', 'list-unsubscribe', 'list-unsubscribe-post']))
    }
    expect(judged.spf).toEqual({ result: 'pass', domain: `bounce.${DOMAIN}` })
    expect(judged.dmarc).toMatchObject({ result: 'pass' })
  }
  expect(references.size).toBe(arriving.length)

  // ---- What people do with it is counted.
  const read1 = async (n: number) => read((await mailOf(world, arriving[n] as string))[0] as Buffer)
  const [ann, bob, cy] = [await read1(0), await read1(1), await read1(2)]
  const open = async ({ images: [pixel = ''] }: ReadMail) => {
    const answer = await fetch(pixel)
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'image/gif'])
  }
  const click = async ({ links }: ReadMail, name: string) => {
    const answer = await fetch(links.get(name) as string, { redirect: 'manual' })
    expect(answer.status).toBe(302)
    return answer.headers.get('location')
  }
  await open(ann)
  await open(ann)
  await open(bob)
  expect(await click(ann, 'Shop')).toBe('https://shop.test/?a=1&b=2')
  expect(await click(ann, 'Two')).toBe('https://shop.test/zwei?%C3%BC=%20')
  expect(await click(cy, 'Shop')).toBe('https://shop.test/?a=1&b=2')
  const shown = await fetch(cy.links.get('View') as string)
  expect([shown.status, (await shown.text()).includes('They ring')]).toEqual([200, true])

  // Looking at the page is no wish; one click of the mail program is, and so is a mail of hers.
  const [, address = ''] = /<(http[^>]+)>/.exec(bob.header('list-unsubscribe')) ?? []
  expect((await fetch(address)).status).toBe(200)
  expect((await statsOf(world, id)).unsubscribed).toBe(0)
  const oneClick = new URLSearchParams([bob.header('list-unsubscribe-post').split('=') as [string, string]])
  expect((await fetch(address, { method: 'POST', body: oneClick })).status).toBe(200)
  const [, mailbox = ''] = /<mailto:([^>]+)>/.exec(cy.header('list-unsubscribe')) ?? []
  const transport = createTransport({
    host: '127.0.0.1',
    port: postfix.port,
    tls: { ca: postfix.ca, servername: HOST },
  })
  await transport.sendMail({ from: arriving[2] as string, to: mailbox, subject: 'unsubscribe', text: 'unsubscribe' })
  await until(async () => (await statsOf(world, id)).unsubscribed === 2)
  expect(await metrics(world, began)).toEqual({
    outlook_365: { sent: 17, delivered: 14, bounced: 3, opened: 3, unique_opened: 2, clicked: 3, unique_clicked: 2 },
    google_workspace: { sent: late, delivered: late, bounced: BOUNCED_LATER.length },
  })
  expect(await statsOf(world, id)).toMatchObject({
    opened: 3,
    unique_opens: 2,
    clicks: 3,
    unique_clicks: 2,
    unsubscribed: 2,
    delivered: 27,
    bounced: 14,
  })

  // ---- The next message goes to those who are left.
  const lost = [...unknown, ...gone, ...arriving.slice(1, 3)]
  const next = await send(
    world,
    EVERYBODY.filter((it) => lost.includes(it)),
  )
  const left = EVERYBODY.length - lost.length
  await until(async () => (await view(world, next)).successful === left)
  await until(async () => (await countIn(world, arriving)) === 2 * arriving.length - 2)
  await until(() => host.received.length === 2 * fine.length + full.length + busy.length + 2)
  expect((await view(world, next)).delivery.states).toEqual({ sent: left, skipped: lost.length })
  await world.server.stop()
})
