// Nobody disappears: what a view counts is everybody whom the message was for, at every moment, whatever became of them.

import { expect, test } from 'vitest'
import type { Tenant, TestApp } from '../../../test/app.ts'
import { aMessage, type FakeSender, only, recipients, runEngine, setStage } from '../../../test/engine.ts'
import type { ChannelOutcome } from '../../channels/channel.ts'
import type { VirtualClock } from '../../lib/clock.ts'
import { sql } from '../../storage/sql.ts'
import { type SubscriptionType, subscriptionTypes } from '../../users/subscriptions/subscription.ts'
import { type Provider, providerOf, providers } from '../delivery.ts'
import type { Engine } from '../engine/types.ts'

let app: TestApp
let clock: VirtualClock
let sender: FakeSender
let engine: Engine
let tenant: Tenant

setStage((stage) => {
  ;({ app, clock, sender, engine, tenant } = stage)
})

/** Those of the last two services have no push any more; no message of any channel is for them. */
const TYPES = subscriptionTypes.filter((type) => type !== 'WindowsPhonePush' && type !== 'AlexaPush')
const CHANNELS = ['push', 'email', 'sms'] as const
type Channel = (typeof CHANNELS)[number]
const channelOf = (type: SubscriptionType): Channel => (type === 'Email' ? 'email' : type === 'SMS' ? 'sms' : 'push')

const OUTCOMES: ChannelOutcome[] = [
  { kind: 'sent' },
  { kind: 'failed', reason: 'too large' },
  { kind: 'gone', reason: 'unregistered' },
  { kind: 'unknown', reason: 'no answer' },
  { kind: 'retry', reason: 'busy' },
]
/** One for each outcome, one who does not want any, one who is deleted before it is sent, and one who has had enough. */
const OF_EACH = OUTCOMES.length + 3

const ask = (path: string, more: object = {}) =>
  app.request(path, { headers: { authorization: `Key ${tenant.key}` }, ...more })

async function expectAddedUp(ids: Record<Channel, string>, total: Record<Channel, number>, when: string) {
  for (const channel of CHANNELS) {
    const { body } = await ask(`/notifications/${ids[channel]}?app_id=${tenant.id}`)
    const { successful, failed, errored, skipped, remaining } = body
    const all = successful + failed + errored + skipped + remaining
    expect(all, `${channel} ${when}: ${JSON.stringify(body.delivery)}`).toBe(total[channel])
    const stats = Object.values(body.platform_delivery_stats) as Record<string, number>[]
    for (const name of ['successful', 'failed', 'errored', 'skipped'])
      expect(stats.reduce((sum, it) => sum + (it[name] as number), 0)).toBe(body[name])
  }
}

test.each<[string, ReadonlySet<Provider>]>([
  ['with every provider', new Set(providers)],
  ['with every other provider', new Set(providers.filter((_, n) => n % 2 === 0))],
  ['with no provider', new Set<Provider>()],
])('successful, failed, errored, skipped and remaining are all recipients: %s', async (_, ready) => {
  sender.ready = async () => ready
  await ask(`/apps/${tenant.id}/delivery_settings`, {
    method: 'PUT',
    headers: { authorization: `Key ${tenant.organizationKey}` },
    body: { frequency_caps: CHANNELS.map((channel) => ({ channel, count: 1, window: 1, unit: 'hours' })) },
  })
  const total = { push: 0, email: 0, sms: 0 }
  const [deleted, capped]: [string[], string[]] = [[], []]
  for (const type of TYPES) {
    const made = await recipients(engine, tenant.id, OF_EACH, { type })
    total[channelOf(type)] += made.length
    for (const [n, outcome] of OUTCOMES.entries()) sender.script(made[n]?.token ?? '', outcome)
    const [unwanted, gone, tired] = made.slice(OUTCOMES.length).map(({ id }) => id) as [string, string, string]
    deleted.push(gone)
    capped.push(tired)
    await app.db.query(sql`
      update subscriptions set notification_types = -2 where app_id = ${tenant.id} and id = ${unwanted}`)
  }
  for (const channel of CHANNELS)
    await aMessage(engine, tenant.id, { channel, audience: only(...capped), lane: 'direct' })
  await runEngine(engine)
  clock.advance({ minutes: 5 })

  const contents: Record<Channel, object> = {
    push: { contents: { en: 'Bells' } },
    email: { email_subject: 'Bells', email_body: 'Bells', isEmail: true },
    sms: { contents: { en: 'Bells' }, isSMS: true },
  }
  const make = async (more: object) => {
    const ids = { push: '', email: '', sms: '' }
    for (const channel of CHANNELS)
      ids[channel] = await aMessage(engine, tenant.id, { channel, content: contents[channel], ...more })
    return ids
  }
  const now = await make({ options: { ttl: 3_600 } })
  const later = await make({ options: { delayedOption: 'last-active' } })
  await runEngine(engine)
  await expectAddedUp(now, total, 'after the first try')
  await expectAddedUp(later, total, 'while they wait')

  for (const id of deleted)
    await app.db.query(sql`delete from subscriptions where app_id = ${tenant.id} and id = ${id}`)
  for (const channel of CHANNELS)
    await ask(`/notifications/${later[channel]}?app_id=${tenant.id}`, { method: 'DELETE' })
  clock.advance({ hours: 2 })
  await runEngine(engine)
  await expectAddedUp(now, total, 'when their time is over')
  await expectAddedUp(later, total, 'after the cancel')

  const { body } = await ask(`/notifications/${now.push}?app_id=${tenant.id}`)
  expect(body.remaining).toBe(0)
  const without = TYPES.filter((type) => channelOf(type) === 'push' && !ready.has(providerOf(type) as Provider))
  // Whoever does not want it is failed before anybody asks who could bring it.
  const { not_configured = 0, not_supported = 0 } = body.delivery.reasons.skipped
  expect(not_configured + not_supported).toBe(without.length * (OF_EACH - 1))
  expect(body.errored).toBeGreaterThanOrEqual(not_configured + not_supported)
  const withCap = TYPES.filter((type) => channelOf(type) === 'push').length - without.length
  expect(body.skipped).toBe(withCap)
  expect(body.failed).toBeGreaterThanOrEqual(TYPES.filter((type) => channelOf(type) === 'push').length)
})
