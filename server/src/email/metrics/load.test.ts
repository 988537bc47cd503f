import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { aDomain, type Line, linesOf, load as loadInto, metricsOf } from '../../../test/email-events.ts'
import { runJobs } from '../../../test/events.ts'
import { type VirtualClock, virtualClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { sql } from '../../storage/sql.ts'
import { readProviders } from '../inbox-providers/providers.ts'
import { LoadError, loadEvents } from './load-events.ts'

let app: TestApp
let clock: VirtualClock
beforeAll(async () => {
  clock = virtualClock('2030-06-15T12:00:00Z')
  app = await testApp({ clock })
})
afterAll(() => app.close())

const load = (...lines: (Line | string)[]) => loadInto(app, clock, lines)
const counts = (domain: string, start = '2030-06-01T00:00:00Z', end = '2030-07-01T00:00:00Z') =>
  metricsOf(app, domain, start, end)
const at = (minutes: number) => new Date(Date.parse('2030-06-10T10:00:00Z') + minutes * 60_000).toISOString()
const event = (domain: string, name: string, more: Line = {}): Line => ({
  domain,
  event: name,
  recipient: 'ann@gmail.com',
  at: at(0),
  ...more,
})
const ONCE = ['sent', 'delivered', 'failed', 'bounced', 'complained']
const AGAIN = ['opened', 'clicked']

describe('with a message_id', () => {
  test.each(ONCE)('%s counts once for each message and recipient, however often it is told', async (name) => {
    const domain = aDomain()
    const line = event(domain, name, { message_id: 'm1' })
    await load(line, line, { ...line, at: at(5) })
    await load(line, { ...line, recipient: 'ANN@gmail.com' })
    expect(await counts(domain)).toEqual({ gmail: { [name]: 1 } })
    await load({ ...line, message_id: 'm2' }, { ...line, recipient: 'bob@gmail.com' })
    expect(await counts(domain)).toEqual({ gmail: { [name]: 3 } })
  })

  test.each(AGAIN)('%s counts each time, and as unique once for each message and recipient', async (name) => {
    const domain = aDomain()
    const line = event(domain, name, { message_id: 'm1' })
    await load(line, line, { ...line, at: at(5) })
    await load(line)
    expect(await counts(domain)).toEqual({ gmail: { [name]: 4, [`unique_${name}`]: 1 } })
    await load({ ...line, message_id: 'm2' }, { ...line, recipient: 'bob@gmail.com' })
    expect(await counts(domain)).toEqual({ gmail: { [name]: 6, [`unique_${name}`]: 3 } })
  })

  test('each app and each domain has emails of its own', async () => {
    const [domain, other] = [aDomain(), aDomain()]
    const tenant = await app.anotherTenant()
    const line = event(domain, 'opened', { message_id: 'm1' })
    await load(line, { ...line, domain: other }, { ...line, app_id: tenant.id })
    expect(await counts(domain)).toEqual({ gmail: { opened: 1, unique_opened: 1 } })
    expect(await counts(other)).toEqual({ gmail: { opened: 1, unique_opened: 1 } })
  })

  test('a unique open lies where the first one does, also when that is told last', async () => {
    const domain = aDomain()
    const line = event(domain, 'opened', { message_id: 'm1' })
    await load({ ...line, at: at(120) })
    await load({ ...line, at: at(60) })
    await load({ ...line, at: at(0) })
    expect(await counts(domain, at(0), at(1))).toEqual({ gmail: { opened: 1, unique_opened: 1 } })
    expect(await counts(domain, at(1), at(180))).toEqual({ gmail: { opened: 2 } })
  })
})

describe('without a message_id', () => {
  test.each(ONCE)('%s counts for every line', async (name) => {
    const domain = aDomain()
    await load(event(domain, name), event(domain, name))
    await load(event(domain, name, { message_id: null }))
    expect(await counts(domain)).toEqual({ gmail: { [name]: 3 } })
  })

  test.each(AGAIN)('%s is unique for each domain and recipient', async (name) => {
    const domain = aDomain()
    await load(event(domain, name), event(domain, name, { recipient: 'bob@gmail.com' }), event(domain, name))
    await load(event(domain, name, { at: at(7) }))
    expect(await counts(domain)).toEqual({ gmail: { [name]: 4, [`unique_${name}`]: 2 } })
    await load(event(domain, name, { message_id: 'm1' }))
    expect(await counts(domain)).toEqual({ gmail: { [name]: 5, [`unique_${name}`]: 3 } })
  })
})

describe('the provider', () => {
  test('is the one that the line names, or follows from the recipient', async () => {
    const domain = aDomain()
    await load(
      event(domain, 'sent', { provider: 'proton' }),
      event(domain, 'sent', { provider: null }),
      event(domain, 'sent', { recipient: 'a@b@firma.de' }),
      event(domain, 'sent', { recipient: '"a b"@shop.example' }),
    )
    expect(await counts(domain)).toEqual({
      german: { sent: 1 },
      gmail: { sent: 1 },
      proton: { sent: 1 },
      other: { sent: 1 },
    })
  })

  test('follows from names of the operator before ours', async () => {
    const domain = aDomain()
    const providers = readProviders({ providers: { rackspace: { domains: ['gmail.com'] } } })
    await loadInto(app, clock, [event(domain, 'sent')], { providers })
    expect(await counts(domain)).toEqual({ rackspace: { sent: 1 } })
  })

  test('follows from mail hosts that were looked up, and they are looked up when asked for', async () => {
    const domain = aDomain()
    const asked: string[] = []
    const resolver = {
      async mx(name: string) {
        asked.push(name)
        return ['aspmx.l.google.com']
      },
    }
    const line = (recipient: string) => event(domain, 'sent', { recipient })
    await load(line('a@workspace.example'))
    await loadInto(app, clock, [line('a@workspace.example'), line('b@WORKSPACE.example.'), line('c@gmail.com')], {
      resolver,
    })
    await load(line('d@workspace.example'))
    expect(asked).toEqual(['workspace.example'])
    expect(await counts(domain)).toEqual({ gmail: { sent: 1 }, google_workspace: { sent: 3 }, other: { sent: 1 } })
  })
})

describe('the domain', () => {
  const stateOf = async (domain: string) => {
    const [row] = await app.db.query<{ state: string; activatedBy: string | null }>(
      sql`select state, activated_by from email_domains where app_id = ${app.tenant.id} and domain = ${domain}`,
    )
    return row && `${row.state} by ${row.activatedBy}`
  }

  test('becomes an active one of the app, in lower case', async () => {
    const domain = aDomain()
    await load(event(domain.toUpperCase(), 'sent'))
    expect(await stateOf(domain)).toBe('active by load')
  })

  test('that was waiting becomes active, and stays what else it is', async () => {
    const domain = aDomain()
    await app.db.query(sql`
      insert into email_domains (app_id, domain, state, created_at, updated_at)
      values (${app.tenant.id}, ${domain}, 'pending', ${clock.now()}, ${clock.now()})`)
    await load(event(domain, 'sent'))
    expect(await stateOf(domain)).toBe('active by load')
  })

  test.each(['check', 'force', 'catch'])(
    'that was activated by %s and paused is active for metrics alone',
    async (by) => {
      const domain = aDomain()
      await app.db.query(sql`
      insert into email_domains (app_id, domain, state, activated_by, created_at, updated_at)
      values (${app.tenant.id}, ${domain}, 'paused', ${by}, ${clock.now()}, ${clock.now()})`)
      await load(event(domain, 'sent'))
      expect(await stateOf(domain)).toBe('active by load')
      expect(await counts(domain)).toEqual({ gmail: { sent: 1 } })
    },
  )

  test.each([
    ['check', 'active by check'],
    ['force', 'active by force'],
    // Active for caught mail, it would not be so any more when mail goes out.
    ['catch', 'active by load'],
  ])('that is active by %s stays so', async (by, state) => {
    const domain = aDomain()
    await app.db.query(sql`
      insert into email_domains (app_id, domain, state, activated_by, created_at, updated_at)
      values (${app.tenant.id}, ${domain}, 'active', ${by}, ${clock.now()}, ${clock.now()})`)
    await load(event(domain, 'sent'))
    expect(await stateOf(domain)).toBe(state)
  })

  test('is known but inactive when a line says so, whether before or after its events', async () => {
    const [before, after] = [aDomain(), aDomain()]
    const result = await load({ domain: before, active: false }, event(before, 'sent'), event(after, 'sent'), {
      domain: after,
      active: false,
    })
    expect(result).toEqual({ loaded: 4, refused: [] })
    for (const domain of [before, after]) {
      expect(await stateOf(domain)).toMatch(/^paused/)
      expect(await counts(domain)).toEqual({})
    }
    await load({ domain: before, active: true }, event(after, 'sent'))
    expect(await counts(before)).toEqual({ gmail: { sent: 1 } })
    expect(await counts(after)).toEqual({ gmail: { sent: 2 } })
  })

  test('and what becomes of it stands in the audit log, once', async () => {
    const domain = aDomain()
    await load(event(domain, 'sent'), event(domain, 'sent'))
    await load(event(domain, 'sent'), { domain: aDomain(), active: true })
    await load({ domain, active: false })
    const entries = await app.db.query<{ action: string; detail: object }>(sql`
      select action, detail from audit_log where app_id = ${app.tenant.id} and target_id = ${domain} order by action`)
    expect(entries).toEqual([
      { action: 'email_domain.activate', detail: { by: 'load' } },
      { action: 'email_domain.pause', detail: { by: 'load' } },
    ])
  })
})

describe('a line that is wrong', () => {
  test.each<[string, Line | string]>([
    ['is not JSON', '{"app_id":'],
    ['must be an object', '[]'],
    ['must be an object', 'null'],
    ['app_id is required', event('x.example', 'sent', { app_id: null })],
    ['app_id must be a string', event('x.example', 'sent', { app_id: 5 })],
    ['app_id must be a UUID', event('x.example', 'sent', { app_id: 'x' })],
    ['there is no such app', event('x.example', 'sent', { app_id: newId() })],
    ['domain is required', event(undefined as unknown as string, 'sent')],
    ['domain must not be empty', event('', 'sent')],
    ['domain must be the name of a domain', event('no domain', 'sent')],
    [
      'event must be one of sent, delivered, opened, clicked, failed, bounced, complained',
      event('x.example', 'unique_opened'),
    ],
    ['recipient is required', event('x.example', 'sent', { recipient: undefined })],
    ['recipient must be an email address', event('x.example', 'sent', { recipient: 'ann' })],
    ['recipient must be an email address', event('x.example', 'sent', { recipient: '@gmail.com' })],
    [
      'recipient must have at most 1000 characters',
      event('x.example', 'sent', { recipient: `${'a'.repeat(1_000)}@x.y` }),
    ],
    ['provider must be one of apple, ', event('x.example', 'sent', { provider: 'hotmail' })],
    ['message_id must be a string', event('x.example', 'sent', { message_id: 7 })],
    ['message_id must not be empty', event('x.example', 'sent', { message_id: '' })],
    ['at is required', event('x.example', 'sent', { at: undefined })],
    ['at must be a date-time of RFC 3339', event('x.example', 'sent', { at: '2030-02-30T00:00:00Z' })],
    ['at must be a string', event('x.example', 'sent', { at: 1_900_000_000 })],
    ['at lies more than 400 days in the past', event('x.example', 'sent', { at: '2029-05-01T00:00:00Z' })],
    ['at lies more than 31 days in the future', event('x.example', 'sent', { at: '2030-08-01T00:00:00Z' })],
    ['active must be true or false', { domain: 'x.example', active: 'no' }],
    ['a line has an event or says', event('x.example', 'sent', { active: true })],
  ])('%s', async (reason, line) => {
    const domain = aDomain()
    const result = await load(event(domain, 'sent'), '', line, '  \r', event(domain, 'sent'))
    expect(result).toEqual({ loaded: 2, refused: [expect.stringMatching(new RegExp(`^3: ${reason}`))] })
    expect(await counts(domain)).toEqual({ gmail: { sent: 2 } })
    const unknown = await app.db.query(sql`
      select 1 as one from email_domains where app_id = ${app.tenant.id} and domain = 'x.example'`)
    expect(unknown).toEqual([])
  })
})

describe('loads', () => {
  test('that run at the same time count what counts once, once', async () => {
    const domain = aDomain()
    const lines = Array.from({ length: 400 }, (_, n) =>
      event(domain, n % 2 ? 'delivered' : 'opened', {
        message_id: `m${n % 40}`,
        recipient: `${n % 7}@gmail.com`,
        at: at(n % 13),
      }),
    )
    const emails = (name: string) =>
      new Set(lines.filter((it) => it.event === name).map((it) => `${it.message_id} ${it.recipient}`)).size
    const orders = [lines, lines.toReversed(), lines.toSorted((a, b) => (String(a.at) < String(b.at) ? 1 : -1)), lines]
    await Promise.all(orders.map((it) => load(...it)))
    expect(await counts(domain)).toEqual({
      gmail: { opened: 800, unique_opened: emails('opened'), delivered: emails('delivered') },
    })
  })

  test('of more lines than one batch are whole, and go on from a line', async () => {
    const domain = aDomain()
    const lines = Array.from({ length: 12_345 }, (_, n) => ({
      app_id: app.tenant.id,
      ...event(domain, 'sent'),
      at: at(n % 99),
    }))
    const ctx = { db: app.db, clock }
    const refuse = () => {}
    expect(await loadEvents(ctx, linesOf(lines), { refuse })).toEqual({ loaded: 12_345, refused: 0 })
    expect(await loadEvents(ctx, linesOf(lines), { from: 12_341, refuse })).toEqual({ loaded: 5, refused: 0 })
    expect(await counts(domain)).toEqual({ gmail: { sent: 12_350 } })
  })

  test('that broke off can be repeated from the start where emails are named: only opens and clicks count again', async () => {
    const domain = aDomain()
    const lines = Array.from(
      { length: 6_000 },
      (_, n): Line => ({
        app_id: app.tenant.id,
        ...event(domain, n % 3 ? 'delivered' : 'opened', { message_id: `m${n % 2_000}` }),
      }),
    )
    async function* broken() {
      yield* linesOf(lines.slice(0, 5_500))
      throw new Error('the pipe broke')
    }
    const refuse = () => {}
    await expect(loadEvents({ db: app.db, clock }, broken(), { refuse })).rejects.toThrow('--from 5001')
    await loadEvents({ db: app.db, clock }, linesOf(lines), { refuse })
    const opens = (upTo: number) => lines.slice(0, upTo).filter((it) => it.event === 'opened').length
    const emails = (name: string) => new Set(lines.filter((it) => it.event === name).map((it) => it.message_id)).size
    expect(await counts(domain)).toEqual({
      gmail: {
        delivered: emails('delivered'),
        opened: opens(5_000) + opens(6_000),
        unique_opened: emails('opened'),
      },
    })
  })

  test('that break off say how far they came, and what they say is so', async () => {
    const domain = aDomain()
    async function* broken() {
      for (let n = 0; n < 11_000; n++) yield JSON.stringify({ app_id: app.tenant.id, ...event(domain, 'sent') })
      throw new Error('the pipe broke')
    }
    const failure = await loadEvents({ db: app.db, clock }, broken(), { refuse: () => {} }).catch((error) => error)
    expect(failure).toBeInstanceOf(LoadError)
    const [, next] =
      /^the pipe broke; everything before line (\d+) is loaded: go on with --from \1$/.exec(failure.message) ?? []
    expect(await counts(domain)).toEqual({ gmail: { sent: Number(next) - 1 } })
    expect(Number(next)).toBe(10_001)
  })
})

test('what was counted is forgotten after 400 days, instants by whole months', async () => {
  const clock = virtualClock('2030-06-15T12:00:00Z')
  const app = await testApp({ clock })
  try {
    const domain = aDomain()
    const line = { domain, event: 'opened', message_id: 'm', recipient: 'a@gmail.com' }
    await loadInto(app, clock, [
      { ...line, at: '2030-05-31T23:30:00Z' },
      { ...line, at: '2030-06-01T00:30:00Z' },
    ])
    const left = async () => {
      const [row] = await app.db.query<{ instants: number; rollups: number; facts: number }>(sql`
        select (select count(*) from email_instants) as instants, (select count(*) from email_rollups) as rollups,
          (select count(*) from loaded_facts) as facts`)
      return row
    }
    clock.advance({ days: 350 })
    await runJobs(app, clock)
    expect(await left()).toEqual({ instants: 2, rollups: 6, facts: 1 })
    clock.advance({ days: 35 })
    await runJobs(app, clock)
    expect(await left()).toEqual({ instants: 2, rollups: 4, facts: 1 })
    clock.advance({ days: 2 })
    await runJobs(app, clock)
    expect(await left()).toEqual({ instants: 1, rollups: 0, facts: 0 })
    clock.advance({ days: 30 })
    await runJobs(app, clock)
    expect(await left()).toEqual({ instants: 0, rollups: 0, facts: 0 })
  } finally {
    await app.close()
  }
})
