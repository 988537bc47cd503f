import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { unshared } from '../../test/engine.ts'
import { runJobs } from '../../test/events.ts'
import { aSegment, tagIs } from '../../test/segments.ts'
import { aStoredMessage, deliver, fetchFile, linesOf } from '../../test/stored-messages.ts'
import { aName, anEmail, aPhone, aUser, NOBODY } from '../../test/users.ts'
import { virtualClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { createScanAudience } from '../segments/scan.ts'
import { sql } from '../storage/sql.ts'
import { csvLine } from './csv.ts'
import { makeExport } from './make.ts'

let app: TestApp
const clock = virtualClock('2030-01-01T09:00:00Z')
beforeAll(async () => {
  app = await testApp({ clock })
})
afterAll(() => app.close())

const exportPlayers = (body?: object) =>
  app.request(`/players/csv_export?app_id=${app.tenant.id}`, { method: 'POST', ...(body && { body }) })
const exportHistory = (id: string, events: string) =>
  app.request(`/notifications/${id}/history`, { body: { app_id: app.tenant.id, events, email: 'me@example.com' } })
const exportActivity = (id: string) =>
  app.request(`/notifications/${id}/export_events?app_id=${app.tenant.id}`, { method: 'POST' })

const BUSY = {
  status: 400,
  body: { errors: ['An export of this kind is being made already. Ask again when it is ready.'] },
}

describe('players/csv_export', () => {
  test('answers an address that is 403 until the file is ready, and 404 after three days', async () => {
    const user = await aUser(app, {
      properties: { tags: { plan: 'gold, "best"' }, language: 'de', country: 'DE' },
      subscriptions: [{ type: 'AndroidPush', token: aName('token'), app_version: '1.2' }],
    })
    const { status, body } = await exportPlayers({ extra_fields: ['country', 'external_user_id', 'nonsense'] })
    expect(status).toBe(200)
    const address: string = body.csv_file_url
    expect(address).toMatch(new RegExp(`^${app.url}/exports/${app.tenant.id}/[0-9a-f-]{36}/[\\w-]{43}\\.csv\\.gz$`))
    expect((await fetchFile(address)).status).toBe(403)
    await runJobs(app, clock)
    const { text } = await fetchFile(address)
    const [header] = text.split('\r\n')
    expect(header).toBe(
      'id,identifier,session_count,language,timezone,game_version,device_os,device_type,device_model,ad_id,tags,last_active,playtime,amount_spent,created_at,invalid_identifier,badge_count,country,external_user_id',
    )
    const line = text.split('\r\n').find((it) => it.startsWith(user.subscriptionIds[0] as string))
    expect(line).toContain('"{""plan"":""gold, \\""best\\""""}"')
    expect(line).toMatch(new RegExp(`,1893488400,0,0,1893488400,f,0,DE,${user.externalId}$`))
    const head = await fetch(address, { method: 'HEAD' })
    expect(head.headers.get('content-type')).toBe('application/gzip')
    expect(Number(head.headers.get('content-length'))).toBeGreaterThan(100)

    clock.advance({ days: 3, ms: -1 })
    expect((await fetchFile(address)).status).toBe(200)
    clock.advance({ ms: 1 })
    expect((await fetchFile(address)).status).toBe(404)
    await runJobs(app, clock)
    const left = await app.db.query(sql`select n from export_chunks where app_id = ${app.tenant.id}`)
    expect(left).toEqual([])
  })

  test('cells that a spreadsheet would take for a formula begin with a quote', async () => {
    const names = ['=1+1', '+cmd', '-2', '@SUM(A1)', '\tx', '\rx'].map((text) => `${text}${aName()}`)
    for (const external_id of names) await aUser(app, { identity: { external_id }, subscriptions: [anEmailDraft()] })
    const phone = aPhone()
    await aUser(app, { subscriptions: [{ type: 'SMS', token: phone }] })
    const { body } = await exportPlayers({ extra_fields: ['external_user_id', 'notification_types'] })
    await runJobs(app, clock)
    const { text } = await fetchFile(body.csv_file_url)
    for (const name of names) expect(text).toContain(`'${name}`)
    expect(text).toContain(`,'${phone},`)
    expect(text).not.toMatch(/,"?[=@\t+]/)
  })

  test('holds the subscribed ones of a segment, and the others where they are asked for', async () => {
    const colour = aName('colour')
    const name = aName('segment')
    await aSegment(app, [tagIs('colour', colour)], { name })
    const user = await aUser(app, {
      properties: { tags: { colour } },
      subscriptions: [anEmailDraft(), { ...anEmailDraft(), enabled: false }],
    })
    const [subscribed] = user.subscriptionIds as [string]
    const idsOf = async (body: object) => {
      const answer = await exportPlayers(body)
      await runJobs(app, clock)
      const lines = linesOf((await fetchFile(answer.body.csv_file_url)).text).map(([id]) => id as string)
      return lines.filter((id) => user.subscriptionIds.includes(id)).sort()
    }
    const both = [...user.subscriptionIds].sort()
    expect(await idsOf({ segment_name: name })).toEqual([subscribed])
    expect(await idsOf({ segment_name: name, include_unsubscribed: false })).toEqual([subscribed])
    expect(await idsOf({ segment_name: name, include_unsubscribed: true })).toEqual(both)
    // As the public service does: it is the segment that is narrowed, and not the export of all.
    expect(await idsOf({ include_unsubscribed: false })).toEqual(both)
    expect(await exportPlayers({ include_unsubscribed: 'yes' })).toMatchObject({ status: 400 })
  })

  test('holds those of a segment alone, and those active since', async () => {
    const colour = aName('colour')
    const filters = [tagIs('colour', colour)]
    const name = aName('segment')
    await aSegment(app, filters, { name })
    const tags = { colour }
    const early = await aUser(app, { properties: { tags }, subscriptions: [anEmailDraft()] })
    clock.advance({ hours: 1 })
    const late = await aUser(app, { properties: { tags }, subscriptions: [anEmailDraft()] })
    await aUser(app, { subscriptions: [anEmailDraft()] })
    const idsOf = async (body: object) => {
      const answer = await exportPlayers({ segment_name: name, ...body })
      await runJobs(app, clock)
      return linesOf((await fetchFile(answer.body.csv_file_url)).text)
        .slice(1)
        .map(([id]) => id)
    }
    expect((await idsOf({})).sort()).toEqual([...early.subscriptionIds, ...late.subscriptionIds].sort())
    const since = String(Math.floor(clock.now().getTime() / 1000))
    expect(await idsOf({ last_active_since: since })).toEqual(late.subscriptionIds)
    expect(await exportPlayers({ segment_name: 'nowhere' })).toMatchObject({
      status: 400,
      body: { errors: ['Segment "nowhere" was not found'] },
    })
    expect((await exportPlayers({ last_active_since: 'yesterday' })).status).toBe(400)
  })

  test('one at a time: of twenty that ask at once one is made, and the next when it is done', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => exportPlayers()))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    const refused = answers.filter(({ status }) => status !== 200)
    for (const { status, body } of refused) expect({ status, body }).toEqual(BUSY)
    // Of another kind there may be one beside it.
    const message = await aStoredMessage(app)
    expect((await exportActivity(message.id)).status).toBe(200)
    await runJobs(app, clock)
    expect((await exportPlayers()).status).toBe(200)
    await runJobs(app, clock)
  })

  test('an address that is wrong in any part is a 404', async () => {
    const { body } = await exportPlayers()
    await runJobs(app, clock)
    const [, , , , appId, id, file] = body.csv_file_url.split('/') as string[]
    const at = (...parts: (string | undefined)[]) => fetchFile(`${app.url}/exports/${parts.join('/')}`)
    expect((await at(appId, id, file)).status).toBe(200)
    const other = await app.anotherTenant()
    const wrong = [
      await at(appId, id, `${'A'.repeat(43)}.csv.gz`),
      await at(appId, id, file?.slice(1)),
      await at(appId, id, 'x'),
      await at(appId, NOBODY, file),
      await at(other.id, id, file),
      await at('x', 'y', file),
    ]
    for (const answer of wrong)
      expect(answer).toEqual({ status: 404, text: JSON.stringify({ errors: ['There is no such file'] }) })
  })

  test('a file of many stretches is whole, and made again from where a worker left off', async () => {
    const other = await app.anotherTenant()
    const ids = Array.from({ length: 12_001 }, () => newId()).sort()
    await app.db.query(sql`
      insert into users (app_id, id, first_active, created_at, updated_at)
      select ${other.id}, id, ${clock.now()}, ${clock.now()}, ${clock.now()} from unnest(${ids}::uuid[]) id`)
    await app.db.query(sql`
      insert into subscriptions (app_id, id, user_id, type, type_spelling, created_at, updated_at)
      select ${other.id}, id, id, 'AndroidPush', 'AndroidPush', ${clock.now()}, ${clock.now()} from unnest(${ids}::uuid[]) id`)
    const { body } = await app.request(`/players/csv_export?app_id=${other.id}`, {
      method: 'POST',
      headers: { authorization: `Key ${other.key}` },
    })
    const [, , , , , key = ''] = body.csv_file_url.split('/') as string[]
    // A worker that loses its lease after the first stretch.
    let leases = 1
    const job = {
      appId: other.id,
      id: newId(),
      name: '',
      key,
      payload: {},
      runAt: clock.now(),
      attempts: 0,
      crashes: 0,
    }
    const work = {
      job,
      fence: 1,
      signal: new AbortController().signal,
      isStillHeld: async () => leases-- > 0,
      isStopping: () => false,
      recordProgress: async () => {},
    }
    await makeExport({ db: app.db, clock, scanAudience: createScanAudience(unshared(app.db)) }).run(work)
    expect((await fetchFile(body.csv_file_url)).status).toBe(403)
    await runJobs(app, clock)
    const lines = linesOf((await fetchFile(body.csv_file_url)).text)
    expect(lines.slice(1).map(([id]) => id)).toEqual(ids)
    const chunks = await app.db.query(sql`select n from export_chunks where app_id = ${other.id}`)
    expect(chunks).toHaveLength(3)
  })
})

describe('the history of a message', () => {
  test('lists whom it was sent to, and who clicked', async () => {
    const message = await aStoredMessage(app, { at: clock.now() })
    const user = await aUser(app, { subscriptions: [anEmailDraft()] })
    const [clicked, sent, failed] = [user.subscriptionIds[0] as string, newId(), newId()]
    await deliver(app, message, [
      { subscriptionId: clicked, userId: user.id, clickedAt: clock.now() },
      { subscriptionId: sent },
      { subscriptionId: failed, state: 'failed', reason: 'BadDeviceToken' },
    ])
    const fileOf = async (events: string) => {
      const { status, body } = await exportHistory(message.id, events)
      expect({ status, success: body.success }).toEqual({ status: 200, success: true })
      await runJobs(app, clock)
      return linesOf((await fetchFile(body.destination_url)).text)
    }
    const [header, ...lines] = await fileOf('sent')
    expect(header).toEqual(['subscription_id', 'onesignal_id', 'external_id', 'device_type', 'sent_at'])
    expect(lines.map(([id]) => id).sort()).toEqual([clicked, sent].sort())
    expect(await fileOf('clicked')).toEqual([
      ['subscription_id', 'onesignal_id', 'external_id', 'device_type', 'clicked_at'],
      [clicked, user.id, user.externalId, '1', clock.now().toISOString()],
    ])
  })

  /** One whose mail everything came back of, a minute after the other. */
  async function aMailed(message: Awaited<ReturnType<typeof aStoredMessage>>) {
    const mailed = newId()
    await deliver(app, message, [{ subscriptionId: mailed, platform: 'Email', line: 'bulk/email/0' }])
    const times = [1, 2, 3, 4, 5].map((minutes) => new Date(clock.now().getTime() + minutes * 60_000))
    const [delivered, opened, bounced, complained, unsubscribed] = times
    await app.db.query(sql`
      update deliveries
      set inbox_provider = 'gmail', delivered_at = ${delivered}, opened_at = ${opened}, bounced_at = ${bounced},
        complained_at = ${complained}, unsubscribed_at = ${unsubscribed}
      where app_id = ${app.tenant.id} and message_id = ${message.id} and subscription_id = ${mailed}`)
    return { mailed, times: times.map((time) => time.toISOString()) }
  }

  test('the audience activity holds everybody, with what was decided', async () => {
    const message = await aStoredMessage(app, { at: clock.now() })
    await deliver(app, message, [
      { subscriptionId: newId(), state: 'skipped', reason: 'unsubscribed', attempts: 0 },
      { subscriptionId: newId(), state: 'sent', providerRef: 'ref-1', receivedAt: clock.now() },
      { subscriptionId: newId(), state: 'pending' },
    ])
    const { mailed, times } = await aMailed(message)
    const { body } = await exportActivity(message.id)
    await runJobs(app, clock)
    const [header, ...lines] = linesOf((await fetchFile(body.csv_file_url)).text)
    expect(header?.slice(4)).toEqual([
      ...['type', 'state', 'reason', 'attempts', 'due_at', 'settled_at', 'received_at', 'clicked_at'],
      ...['provider_reference', 'inbox_provider', 'delivered_at', 'opened_at', 'bounced_at', 'complained_at'],
      'unsubscribed_at',
    ])
    const others = lines.filter(([id]) => id !== mailed)
    const byState = Object.fromEntries(others.map((line) => [line[5], line.slice(6, 13)]))
    const [now, settled] = [clock.now().toISOString(), new Date(clock.now().getTime() + 1_000).toISOString()]
    expect(byState).toEqual({
      skipped: ['unsubscribed', '0', now, settled, '', '', ''],
      sent: ['', '1', now, settled, now, '', 'ref-1'],
      pending: ['', '1', now, '', '', '', ''],
    })
    expect(lines.find(([id]) => id === mailed)?.slice(13)).toEqual(['gmail', ...times])
    expect(others.map((line) => line.slice(13).join(''))).toEqual(['', '', ''])
  })

  test('of a message that is not expanded it is a header alone; of one that is not there a 404', async () => {
    const message = await aStoredMessage(app, { state: 'scheduled', expandAt: null })
    const { body } = await exportActivity(message.id)
    await runJobs(app, clock)
    expect(linesOf((await fetchFile(body.csv_file_url)).text)).toHaveLength(1)
    const missing = { status: 404, body: { errors: ['Notification not found'] } }
    for (const id of [NOBODY, 'x']) {
      expect(await exportActivity(id)).toMatchObject(missing)
      expect(await exportHistory(id, 'sent')).toMatchObject(missing)
    }
    const foreign = await aStoredMessage(app, { appId: (await app.anotherTenant()).id })
    expect(await exportActivity(foreign.id)).toMatchObject(missing)
    expect((await exportHistory(message.id, 'opened')).status).toBe(400)
  })

  test('what fails for the last time gives way to the next', async () => {
    const message = await aStoredMessage(app, { at: clock.now() })
    const { body } = await exportActivity(message.id)
    // As if the row were of a version that this one cannot read.
    await app.db.query(sql`
      update exports set request = '{"kind":"activity","messageId":"no id"}'
      where app_id = ${app.tenant.id} and state = 'making'`)
    for (let attempt = 0; attempt < 5; attempt++) {
      expect((await fetchFile(body.csv_file_url)).status).toBe(403)
      await runJobs(app, clock)
      clock.advance({ minutes: 1 })
    }
    expect((await fetchFile(body.csv_file_url)).status).toBe(404)
    expect((await exportActivity(message.id)).status).toBe(200)
    await runJobs(app, clock)
  })

  test('a file never grows beyond 100 GB', async () => {
    const message = await aStoredMessage(app, { at: clock.now() })
    await deliver(app, message, [{ subscriptionId: newId() }])
    const { body } = await exportActivity(message.id)
    await app.db.query(sql`
      update exports set byte_count = 99999999990 where app_id = ${app.tenant.id} and state = 'making'`)
    await runJobs(app, clock)
    expect((await fetchFile(body.csv_file_url)).status).toBe(404)
  })

  test('one whose job was given up is failed after a day', async () => {
    const message = await aStoredMessage(app, { at: clock.now() })
    await exportActivity(message.id)
    await app.db.query(sql`delete from jobs where app_id = ${app.tenant.id}`)
    clock.advance({ hours: 23 })
    await runJobs(app, clock)
    expect((await exportActivity(message.id)).status).toBe(400)
    clock.advance({ hours: 2 })
    await runJobs(app, clock)
    expect((await exportActivity(message.id)).status).toBe(200)
    await runJobs(app, clock)
  })
})

test('exports are look-back requests: 10 in a second, all together', async () => {
  const limited = await testApp({ limits: 'spec', clock: virtualClock(), beside: app })
  const ask = (n: number) =>
    n % 2 === 0
      ? limited.request(`/notifications/${NOBODY}/export_events?app_id=${app.tenant.id}`, { method: 'POST' })
      : limited.request(`/notifications/${NOBODY}/history`, { body: { app_id: app.tenant.id, events: 'sent' } })
  const statuses: number[] = []
  for (let n = 0; n < 11; n++) statuses.push((await ask(n)).status)
  expect(statuses).toEqual([...Array(10).fill(404), 429])
  await limited.close()
})

test('who asked for which file is in the audit log', async () => {
  clock.advance({ seconds: 1 })
  await exportPlayers()
  await runJobs(app, clock)
  const rows = await app.db.query<{ action: string; detail: object }>(sql`
    select action, detail from audit_log where app_id = ${app.tenant.id} and target_type = 'export' order by at desc, id limit 1`)
  expect(rows).toEqual([{ action: 'export.create', detail: { kind: 'subscriptions' } }])
})

test('lines of CSV are as RFC 4180 has them', () => {
  expect(csvLine(['a', 'b "c"', 'd,e', 'f\ng', null, undefined, -1, 'h'])).toBe('a,"b ""c""","d,e","f\ng",,,-1,h\r\n')
  expect(csvLine(['=A1', '+1', '-1', '@x', '\tx', '\rx', 'x=1'])).toBe("'=A1,'+1,'-1,'@x,'\tx,\"'\rx\",x=1\r\n")
})

const anEmailDraft = () => ({ type: 'Email', token: anEmail() })
