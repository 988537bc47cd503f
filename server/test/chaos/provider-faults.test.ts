import { setTimeout as pause } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { FaultOccurrence } from '../../src/sink/faults.ts'
import type { Db } from '../../src/storage/db.ts'
import { sql } from '../../src/storage/sql.ts'
import { until } from '../process/launch.ts'
import { type Channel, type ChannelName, openChannels } from './channels.ts'
import { type Fate, pauseOf, quickFates, RETRY_AFTER, SLOWED_MAILBOXES, slowFates, TIMES } from './fates.ts'
import { openGate, openImpostor, openMailImpostor } from './gate.ts'
import { isFull } from './ledger.ts'
import { closeLater, expectCounted, openRig, type Recipient, type Rig, untilSettled } from './rig.ts'

const MAX_DIRECT = 100
const BEHIND_A_GATE: ChannelName[] = ['apns', 'fcm', 'web_push', 'sms', 'email']
const BEHIND_EACH_GATE = isFull ? 100 : 10
/** Two of them ask for a pause for all of the app; the third has few places, in which something hangs. */
const SUFFERS_ON: ChannelName[] = ['fcm', 'sms', 'smpp']
const PROBES = isFull ? 50 : 10
const PROBE_EVERY_MS = 100
/** How much longer others may take than undisturbed. Anything quicker than ON_TIME_MS counts as undisturbed. */
const MOST_TIMES = 10
const ON_TIME_MS = isFull ? 5_000 : 30_000
/** From a refusal to the row that says when it is tried again. */
const WRITTEN_S = isFull ? 2 : 30
/** At full scale six mails hang until they are given up after five minutes, and a line waits for every slice that has one: all of them may be in one line. */
const SETTLED_MS = isFull ? 2_100_000 : 900_000
/** Texts that one connection to a message centre has under way. All of them are unknown when it breaks. */
const WINDOW = 10

type Person = Recipient & { channel: Channel; fate: Fate; messageId: string; text: string }
type Row = { messageId: string; subscriptionId: string; state: string; attempts: number; dueAt: Date }
type SeenRow = Row & { seenMs: number }

test('whatever a provider does, nothing is lost or sent twice, it is left alone for as long as it says, and no other channel suffers', async () => {
  const { rig, channels, gates, impostors } = await openFaultyRig()
  const all = [...channels.values()]
  const people: Person[] = []
  const note = (channel: Channel, fate: Fate, list: readonly Recipient[], message: { id: string; text: string }) => {
    for (const it of list) people.push({ ...it, channel, fate, messageId: message.id, text: message.text })
  }
  const probed = new Map<ChannelName, Recipient[]>()
  for (const channel of all) probed.set(channel.name, await channel.subscribe(PROBES))
  const watch = watchRetries(rig, all)

  // Whoever shows the certificate of somebody else is told nothing.
  const untrusting = BEHIND_A_GATE.map((name) => channels.get(name) as Channel)
  for (const channel of untrusting) {
    const list = await channel.subscribe(BEHIND_EACH_GATE)
    note(channel, { fault: 'none', count: list.length, states: ['sent'] }, list, await channel.send(list))
  }
  const unreached = [...people]
  await until(() => untrusting.every((channel) => watch.hasWaited(unreached, channel)))
  expect(impostors.map(({ heard }) => heard())).toEqual([0, 0])
  expect(await rig.taken()).toEqual([])
  gates.open()
  watch.letMailGo()

  /** A message to somebody, every tenth of a second, on each of these channels. Answers how long the slowest took. */
  const probe = async (names: readonly ChannelName[]) => {
    const asked: { name: ChannelName; id: string; text: string; at: number }[] = []
    for (let n = 0; n < PROBES; n++) {
      for (const name of names) {
        const { [n]: to } = probed.get(name) as Recipient[]
        const channel = channels.get(name) as Channel
        const message = await channel.send([to as Recipient])
        note(channel, { fault: 'none', count: 1, states: ['sent'] }, [to as Recipient], message)
        asked.push({ name, ...message })
      }
      await pause(PROBE_EVERY_MS)
    }
    const arrivals = async () => {
      const taken = new Map((await rig.taken()).map(({ message_id, text, at }) => [message_id ?? text, at]))
      return asked.map(({ name, id, text, at }) => ({
        name,
        tookMs: (taken.get(id) ?? taken.get(text) ?? Number.NaN) - at,
      }))
    }
    await until(async () => (await arrivals()).every(({ tookMs }) => !Number.isNaN(tookMs)))
    const longest = new Map<ChannelName, number>()
    for (const { name, tookMs } of await arrivals()) longest.set(name, Math.max(longest.get(name) ?? 0, tookMs))
    return longest
  }
  // The first time everything is slow, whatever it is.
  await probe([...channels.keys()])
  const alone = await probe([...channels.keys()])

  /** The longest that anybody of it took while another channel suffered. */
  const slowest = new Map<ChannelName, number>()
  const isSuffering = new Set<ChannelName>()
  for (const channel of all) {
    for (const [fates, most] of [
      [quickFates(channel.name), MAX_DIRECT],
      [slowFates(channel.name), Number.POSITIVE_INFINITY],
    ] as const) {
      const lists = await Promise.all(fates.map((fate) => subscribeFor(rig, channel, fate)))
      const everybody = shuffled(fates.flatMap((fate, n) => (lists[n] as Recipient[]).map((it) => ({ ...it, fate }))))
      for (let n = 0; n < everybody.length; n += most) {
        const some = everybody.slice(n, n + most)
        const message = await channel.send(some)
        for (const it of some) note(channel, it.fate, [it], message)
      }
    }
    if (SUFFERS_ON.includes(channel.name)) isSuffering.add(channel.name)
    const witnesses = [...channels.keys()].filter((name) => name !== channel.name && !isSuffering.has(name))
    for (const [name, tookMs] of await probe(witnesses)) {
      slowest.set(name, Math.max(slowest.get(name) ?? 0, tookMs))
      const mostMs = MOST_TIMES * Math.max(alone.get(name) as number, ON_TIME_MS / MOST_TIMES)
      expect(tookMs, `${name} while ${channel.name} suffers`).toBeLessThanOrEqual(mostMs)
    }
  }

  for (const appId of new Set(all.map(({ appId }) => appId)))
    await untilSettled({ ...rig, keys: { ...rig.keys, appId } }, SETTLED_MS)
  await watch.stop()
  await expectFates(rig, people)
  const medians = await expectPauses(rig, people, watch.rows)
  const others = [...slowest].map(([name, tookMs]) => `${name} ${tookMs} ms (alone ${alone.get(name)})`)
  console.log(`provider faults: ${people.length} deliveries; others ${others.join(', ')}; pauses ${medians.join(', ')}`)
  for (const appId of new Set(all.map(({ appId }) => appId)))
    await expectCounted({ ...rig, keys: { ...rig.keys, appId } })
  for (const { url } of rig.nodes) expect((await fetch(`${url}/health`)).status).toBe(200)
}, 3_000_000)

/** The way to providers begins at somebody who only pretends to be one. */
async function openFaultyRig() {
  const impostors = [await openImpostor(), await openMailImpostor()] as const
  const web = await openGate(impostors[0].port)
  const mail = await openGate(impostors[1].port)
  const rig = await openRig({
    recipients: 0,
    async env({ receivers }) {
      for (const part of [...impostors, web, mail]) closeLater(part)
      const { port: https } = new URL(receivers.apns)
      const { port: smpp } = new URL(receivers.smpp)
      return {
        MAX_IN_FLIGHT: '200',
        PROVIDER_CONNECT: [
          // Who sells access tokens is somebody else than who takes messages: without any, nothing is tried for a minute.
          `https://oauth2.googleapis.com=127.0.0.1:${https}`,
          `https://*=127.0.0.1:${web.port}`,
          `smpp://*=127.0.0.1:${smpp}`,
          `smtp://*=127.0.0.1:${mail.port}`,
        ].join(','),
        SMTP_URL: 'smtp://relay.example.com:587?tls=starttls&catcher=true&pool=10',
      }
    },
  })
  const gates = {
    open() {
      web.leadTo(Number(new URL(rig.box.receivers.apns).port))
      mail.leadTo(Number(new URL(rig.box.receivers.smtp).port))
    },
  }
  return { rig, channels: await openChannels(rig), gates, impostors }
}

async function subscribeFor({ box }: Rig, channel: Channel, fate: Fate): Promise<Recipient[]> {
  if (fate.count === 0) return []
  const list = await channel.subscribe(fate.count, fate.fault === 'rate_limited' ? SLOWED_MAILBOXES : undefined)
  if (fate.fault === 'none') return list
  const response = await fetch(`${box.control}/faults`, {
    method: 'POST',
    body: JSON.stringify({
      channel: channel.inBox,
      fault: fate.fault,
      to: list.map(({ token }) => token),
      count: fate.fault === 'unavailable' ? TIMES : 1,
      ...(fate.fault === 'rate_limited' && { retry_after: RETRY_AFTER }),
    }),
  })
  expect(response.status).toBe(200)
  return list
}

/** In any order, so that each slice has something of everything. */
const shuffled = <Item>(list: readonly Item[]) =>
  list
    .map((item) => ({ item, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item)

/**
 * Nobody waits for minutes here: as if they were over, and the ten for which a relay is left alone that is not who it says. Only of the
 * attempt that was seen: the next one may be written down at this moment, and how long it waits is to be seen first.
 */
async function bringForward(db: Db, apps: readonly string[], seen: readonly Row[]) {
  const now = new Date()
  await db.query(sql`delete from provider_pauses where app_id = any(${apps}::uuid[]) and provider = 'email'`)
  await db.query(sql`
    update deliveries d set due_at = ${now}
    from unnest(${seen.map((it) => it.messageId)}::uuid[], ${seen.map((it) => it.subscriptionId)}::uuid[],
      ${seen.map((it) => it.attempts)}::smallint[]) s(message_id, subscription_id, attempts)
    where d.app_id = any(${apps}::uuid[]) and d.state = 'pending' and d.message_id = s.message_id
      and d.subscription_id = s.subscription_id and d.attempts = s.attempts and d.due_at > ${now}`)
  await db.query(sql`
    update jobs j set run_at = ${now}
    where j.app_id = any(${apps}::uuid[]) and j.state = 'ready' and j.run_at > ${now} and exists (
      select from deliveries d
      where d.app_id = any(${apps}::uuid[]) and d.line = j.key and d.state = 'pending' and d.due_at <= ${now})`)
}

/**
 * Remembers when each delivery was to be tried again, by its attempts. Mail waits for minutes: when that is written down, the time
 * is brought forward. Everything else waits as long as it does.
 */
function watchRetries({ database: { db } }: Rig, channels: readonly Channel[]) {
  const apps = [...new Set(channels.map(({ appId }) => appId))]
  const rows = new Map<string, SeenRow>()
  let isWatching = true
  let mayMailGo = false
  async function look() {
    const found = await db.query<Row & { isMail: boolean }>(sql`
      select message_id, subscription_id, state, attempts, due_at, platform = 'Email' as is_mail from deliveries
      where app_id = any(${apps}::uuid[]) and state = 'pending' and reason is not null`)
    const seenMs = Date.now()
    for (const row of found) {
      const name = `${row.messageId} ${row.subscriptionId} ${row.attempts}`
      if (!rows.has(name)) rows.set(name, { ...row, seenMs })
    }
    const mails = found.filter(({ isMail }) => isMail)
    if (mayMailGo && mails.length > 0) await bringForward(db, apps, mails)
  }
  const watching = (async () => {
    while (isWatching) {
      await look()
      await pause(200)
    }
  })()
  const stop = async () => {
    isWatching = false
    await watching
  }
  closeLater({ close: stop })
  return {
    rows,
    stop,
    hasWaited: (people: readonly Person[], channel: Channel) => {
      const waited = new Set([...rows.values()].map((row) => `${row.messageId} ${row.subscriptionId}`))
      return people.some((it) => it.channel === channel && waited.has(`${it.messageId} ${it.id}`))
    },
    letMailGo() {
      mayMailGo = true
    },
  }
}

const mishapsOf = async ({ box }: Rig) => (await (await fetch(`${box.control}/faults`)).json()) as FaultOccurrence[]

/** Everybody was written to once, or nobody can know; and nobody is unknown for whom there was an answer. */
async function expectFates(rig: Rig, people: readonly Person[]) {
  const rows = await rig.database.db.query<Row>(sql`select message_id, subscription_id, state from deliveries`)
  const states = new Map(rows.map((row) => [`${row.messageId} ${row.subscriptionId}`, row.state]))
  const times = new Map<string, number>()
  for (const { message_id, to, text } of await rig.taken())
    times.set(`${message_id ?? text} ${to}`, (times.get(`${message_id ?? text} ${to}`) ?? 0) + 1)
  const wrong: string[] = []
  let broken = 0
  for (const { channel, fate, messageId, id, text, token } of people) {
    const state = states.get(`${messageId} ${id}`) ?? 'nowhere'
    const taken = times.get(`${channel.name === 'smpp' ? text : messageId} ${token}`) ?? 0
    // With a connection to a message centre all that is under way on it breaks, also what has not been read there.
    const isBroken = channel.name === 'smpp' && state === 'unknown' && (taken === 0 || !fate.states.includes(state))
    if (isBroken) broken++
    if (taken > 1 || (!isBroken && (taken !== 1 || !fate.states.includes(state))))
      wrong.push(`${channel.name} ${fate.fault}: ${state}, taken ${taken} times`)
  }
  expect(wrong).toEqual([])
  expect(rows.length).toBe(people.length)
  const breaks = people.filter(
    ({ channel, fate }) => channel.name === 'smpp' && ['reset_after_accept', 'garbage'].includes(fate.fault),
  )
  expect(broken).toBeLessThanOrEqual(breaks.length * (WINDOW - 1))
}

/** Tells the middle of the pauses after each attempt. */
async function expectPauses(
  rig: Rig,
  people: readonly Person[],
  rows: ReadonlyMap<string, SeenRow>,
): Promise<string[]> {
  const mishaps = Map.groupBy(await mishapsOf(rig), ({ channel, to }) => `${channel} ${to}`)
  const takenAt = new Map((await rig.taken()).map(({ channel, to, at }) => [`${channel} ${to}`, at]))
  const waits = Map.groupBy(
    [...rows.values()].sort((a, b) => a.attempts - b.attempts),
    ({ messageId, subscriptionId }) => `${messageId} ${subscriptionId}`,
  )
  const pauses = new Map<string, number[]>()
  for (const { channel, fate, messageId, id, token } of people) {
    const met = mishaps.get(`${channel.inBox} ${token}`) ?? []
    const last = met.at(-1)?.at as number
    const secondsUntilTaken = ((takenAt.get(`${channel.inBox} ${token}`) as number) - last) / 1_000
    // Never asked for again, once it was under way on a connection that broke.
    if (channel.name === 'smpp' && !(secondsUntilTaken >= 0)) continue
    if (fate.fault !== 'none') expect(met.length, fate.fault).toBe(fate.fault === 'unavailable' ? TIMES : 1)
    if (fate.fault === 'rate_limited' && !['email', 'smpp'].includes(channel.name))
      expect(secondsUntilTaken, `${channel.name} asked again`).toBeGreaterThanOrEqual(RETRY_AFTER)
    if (fate.fault !== 'unavailable') continue
    if (channel.name !== 'email')
      expect(secondsUntilTaken, `${channel.name} asked again`).toBeGreaterThanOrEqual(
        pauseOf(channel.name, TIMES).least,
      )
    for (const { at } of met) {
      // Another try may have ended before it was offered, with a connection that broke: its pause was written down before.
      const row = (waits.get(`${messageId} ${id}`) ?? []).find(({ seenMs }) => seenMs >= at)
      if (!row) continue
      const seconds = (row.dueAt.getTime() - at) / 1_000
      const name = `${channel.name} ${row.attempts}`
      expect(seconds, name).toBeGreaterThanOrEqual(pauseOf(channel.name, row.attempts).least)
      pauses.set(name, [...(pauses.get(name) ?? []), seconds])
    }
  }
  return [...pauses].map(([name, list]) => {
    const [channel, attempt] = name.split(' ') as [ChannelName, string]
    const { middle } = pauseOf(channel, Number(attempt))
    const median = list.sort((a, b) => a - b)[Math.floor(list.length / 2)] as number
    // Of a handful the middle is anywhere.
    if (list.length < 20) return `${name}: ${list.length} only`
    expect(median, name).toBeGreaterThanOrEqual(0.8 * middle)
    expect(median, name).toBeLessThanOrEqual(1.2 * middle + WRITTEN_S)
    return `${name}: ${median.toFixed(1)} s of ${list.length}`
  })
}
