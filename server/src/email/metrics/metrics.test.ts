import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { aDomain, load, metricsOf, metricsPath, ZEROS } from '../../../test/email-events.ts'
import { startUnreachable } from '../../../test/unreachable.ts'
import { NOBODY, told } from '../../../test/users.ts'
import { type VirtualClock, virtualClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { sql } from '../../storage/sql.ts'
import { type InboxProvider, inboxProviders } from '../inbox-providers/providers.ts'
import { countEmails } from './count.ts'
import { emailFacts } from './facts.ts'

let app: TestApp
let clock: VirtualClock
beforeAll(async () => {
  clock = virtualClock('2030-06-15T12:00:00Z')
  app = await testApp({ clock })
})
afterAll(() => app.close())

const DAY_MS = 86_400_000
const daysAgo = (days: number, ms = 0) => new Date(clock.now().getTime() - days * DAY_MS + ms).toISOString()
const sent = (domain: string, at: string, more: object = {}) => ({
  domain,
  recipient: 'somebody@gmail.com',
  event: 'sent',
  at,
  ...more,
})
const ask = (query: Record<string, string>) => app.app(metricsPath(query))
const WINDOW = { start: '2030-06-01T00:00:00Z', end: '2030-07-01T00:00:00Z' }
const invalid = (...errors: string[]) => ({ status: 400, body: { errors } })
const EMPTY = { status: 200, body: { providers: [] } }

/** Makes a domain active, with nothing counted for it. */
async function anActiveDomain(): Promise<string> {
  const domain = aDomain()
  await load(app, clock, [{ domain, active: true }])
  return domain
}

describe('the answer', () => {
  test('has one entry for each inbox provider that got email, with all nine counts', async () => {
    const domain = await anActiveDomain()
    const at = new Date('2030-06-10T10:00:00Z')
    const counts = Object.fromEntries(emailFacts.map((fact, i) => [fact, i + 1]))
    await countEmails(app.db, app.tenant.id, 0, [
      { domain, provider: 'gmail', at, ...counts },
      { domain, provider: 'other_eu', at, sent: 1 },
    ])
    expect(told(await ask({ domain, ...WINDOW }))).toEqual({
      status: 200,
      body: {
        providers: [
          {
            provider: 'gmail',
            metrics: {
              sent: 1,
              delivered: 2,
              opened: 3,
              clicked: 4,
              unique_opened: 5,
              unique_clicked: 6,
              failed: 7,
              bounced: 8,
              complained: 9,
            },
          },
          { provider: 'other_eu', metrics: { ...ZEROS, sent: 1 } },
        ],
      },
    })
  })

  test('lists all 27 providers in the order of the interface, whatever was counted first', async () => {
    const domain = await anActiveDomain()
    const at = new Date('2030-06-10T10:00:00Z')
    const mixed = inboxProviders.toSorted((a, b) => (a.slice(1) < b.slice(1) ? -1 : 1))
    await countEmails(
      app.db,
      app.tenant.id,
      0,
      mixed.map((provider) => ({ domain, provider, at, sent: 1 })),
    )
    const { body } = await ask({ domain, ...WINDOW })
    expect(body.providers.map(({ provider }: { provider: string }) => provider)).toEqual(inboxProviders)
    expect(inboxProviders).toHaveLength(27)
  })

  test('may name providers that are new, after those that are known', async () => {
    const domain = await anActiveDomain()
    const at = new Date('2030-06-10T10:00:00Z')
    const providers = ['a_new_one' as InboxProvider, 'other' as const]
    await countEmails(
      app.db,
      app.tenant.id,
      0,
      providers.map((provider) => ({ domain, provider, at, sent: 1 })),
    )
    const { body } = await ask({ domain, ...WINDOW })
    expect(body.providers.map(({ provider }: { provider: string }) => provider)).toEqual(['other', 'a_new_one'])
  })

  test.each(emailFacts)('has an entry when %s alone is above 0', async (fact) => {
    const domain = await anActiveDomain()
    await countEmails(app.db, app.tenant.id, 0, [
      { domain, provider: 'proton', at: new Date('2030-06-10T10:00:00Z'), [fact]: 1 },
    ])
    expect((await ask({ domain, ...WINDOW })).body.providers).toEqual([
      { provider: 'proton', metrics: { ...ZEROS, [fact]: 1 } },
    ])
  })

  test('has integers of 64 bits, to the last digit', async () => {
    const domain = await anActiveDomain()
    await countEmails(app.db, app.tenant.id, 0, [
      { domain, provider: 'apple', at: new Date('2030-05-31T23:30:00Z'), sent: 1 },
      { domain, provider: 'apple', at: new Date('2030-06-10T10:00:00Z'), sent: 1 },
    ])
    await app.db.query(sql`
      update email_rollups set sent = 9223372036854775000
      where app_id = ${app.tenant.id} and domain = ${domain} and unit = 'month' and starts_at > '2030-05-15'`)
    const path = metricsPath({ domain, start: '2030-05-31T23:00:00Z', end: '2030-07-01T00:00:00Z' })
    const response = await fetch(`${app.url}/apps/${app.tenant.id}${path}`, {
      headers: { authorization: `Key ${app.tenant.key}` },
    })
    expect(await response.text()).toContain('{"sent":9223372036854775001,"delivered":0,')
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
  })
})

describe('the domain', () => {
  test('that is not found for the app has an empty list', async () => {
    const domain = aDomain()
    const other = await app.anotherTenant()
    await load(app, clock, [{ app_id: other.id, ...sent(domain, '2030-06-10T10:00:00Z') }])
    for (const name of [domain, 'unknown.example.com', 'no domain at all', '@', 'ä', 'x'.repeat(3_000)])
      expect(told(await ask({ domain: name, ...WINDOW }))).toEqual(EMPTY)
  })

  test.each(['pending', 'paused'])('that is %s has an empty list, until it is active', async (state) => {
    const domain = aDomain()
    await load(app, clock, [sent(domain, '2030-06-10T10:00:00Z')])
    const setState = (to: string) =>
      app.db.query(sql`update email_domains set state = ${to} where app_id = ${app.tenant.id} and domain = ${domain}`)
    await setState(state)
    expect(told(await ask({ domain, ...WINDOW }))).toEqual(EMPTY)
    await setState('active')
    expect((await ask({ domain, ...WINDOW })).body.providers).toHaveLength(1)
  })

  test('that is active for caught mail has an empty list as soon as mail goes out, and is shown as pending', async () => {
    const [caught, loaded] = [aDomain(), aDomain()]
    await load(
      app,
      clock,
      [caught, loaded].map((domain) => sent(domain, '2030-06-10T10:00:00Z')),
    )
    await app.db.query(sql`
      update email_domains set activated_by = 'catch' where app_id = ${app.tenant.id} and domain = ${caught}`)
    const standing = async (domain: string) => {
      const { providers } = (await ask({ domain, ...WINDOW })).body
      const { state } = (await app.app(`/email/domains/${domain}`)).body
      return [state, providers.length]
    }
    for (const domain of [caught, loaded]) expect(await standing(domain)).toEqual(['active', 1])
    const relay = { mode: 'relay', relay: { host: 'smtp.example.com' } }
    expect((await app.app('/email/settings', { method: 'PUT', body: relay })).status).toBe(200)
    expect(await standing(caught)).toEqual(['pending', 0])
    // It sends nothing until its records are there; what was loaded for it is shown.
    expect(await standing(loaded)).toEqual(['pending', 1])
    await app.app('/email/settings', { method: 'DELETE' })
  })

  test('is found in any case, with a dot at the end, and by its Unicode name', async () => {
    const domain = `${aDomain().split('.')[0]}.xn--bcher-kva.example`
    await load(app, clock, [sent(domain, '2030-06-10T10:00:00Z')])
    for (const name of [domain.toUpperCase(), `${domain}.`, domain.replace('xn--bcher-kva', 'Bücher')])
      expect((await ask({ domain: name, ...WINDOW })).body.providers).toHaveLength(1)
  })

  test('is not mixed up with another of the app, nor with the same of another app', async () => {
    const [domain, other] = [aDomain(), aDomain()]
    const tenant = await app.anotherTenant()
    await load(app, clock, [
      sent(domain, '2030-06-10T10:00:00Z'),
      sent(other, '2030-06-10T10:00:00Z'),
      { app_id: tenant.id, ...sent(domain, '2030-06-10T10:00:00Z') },
    ])
    expect(await metricsOf(app, domain, WINDOW.start, WINDOW.end)).toEqual({ gmail: { sent: 1 } })
  })
})

describe('what is asked', () => {
  const good = { domain: 'example.com', ...WINDOW }

  test.each(['domain', 'start', 'end'])('needs %s', async (name) => {
    const { [name as 'domain']: _, ...rest } = good
    expect(told(await ask(rest))).toEqual(invalid(`${name} is required`))
  })

  test('names all that is missing', async () => {
    expect(told(await ask({}))).toEqual(invalid('domain is required', 'start is required', 'end is required'))
  })

  test.each([
    ['domain', '', 'domain must not be empty'],
    ['start', '', 'start must be an ISO 8601 date and time'],
    ['start', '2030-06-01', 'start must be an ISO 8601 date and time'],
    ['end', 'tomorrow', 'end must be an ISO 8601 date and time'],
    ['end', '1907000000', 'end must be an ISO 8601 date and time'],
    ['start', '2030-06-01T00:00:00', 'start must be an ISO 8601 date and time'],
    ['start', '2030-02-30T00:00:00Z', 'start must be an ISO 8601 date and time'],
    ['end', '2030-06-31T00:00:00Z', 'end must be an ISO 8601 date and time'],
    ['start', '2030-06-01T24:00:00Z', 'start must be an ISO 8601 date and time'],
    ['end', '2030-06-30T23:59:60Z', 'end must be an ISO 8601 date and time'],
    ['end', '2030-06-30T23:60:00Z', 'end must be an ISO 8601 date and time'],
    ['start', '2030-06-01T00:00:00+24:00', 'start must be an ISO 8601 date and time'],
    ['start', '2030-06-01T00:00:00+02', 'start must be an ISO 8601 date and time'],
    ['start', '2030-06-01T00:00:00+0200', 'start must be a date-time of RFC 3339, as 2030-01-31T09:30:00Z'],
  ])('refuses %s=%j', async (name, value, error) => {
    expect(told(await ask({ ...good, [name]: value }))).toEqual(invalid(error))
  })

  test('has each parameter once', async () => {
    const { status, body } = await app.app(`${metricsPath(good)}&domain=other.example.com`)
    expect({ status, body }).toEqual(invalid('domain must be a string'))
  })

  test('has a start before its end', async () => {
    for (const end of [WINDOW.start, '2030-06-01T01:00:00+01:00', '2030-05-31T23:59:59.999Z'])
      expect(told(await ask({ ...good, end }))).toEqual(invalid('start must be before end'))
    expect(told(await ask({ ...good, end: '2030-06-01T00:00:00.001Z' }))).toEqual(EMPTY)
  })

  test('has a start no more than 365 days in the past: exactly 365 are allowed, a second more is not', async () => {
    expect(told(await ask({ ...good, start: daysAgo(365) }))).toEqual(EMPTY)
    const refused = invalid('start must be no more than 365 days in the past')
    expect(told(await ask({ ...good, start: daysAgo(365, -1_000) }))).toEqual(refused)
    expect(told(await ask({ ...good, start: daysAgo(366) }))).toEqual(refused)
    expect(told(await ask({ ...good, start: '0001-01-01T00:00:00Z' }))).toEqual(refused)
  })

  test('may end in the future, and begin there', async () => {
    const domain = aDomain()
    await load(app, clock, [sent(domain, '2030-06-15T12:00:00Z')])
    for (const end of ['2030-06-15T12:00:00.001Z', '2040-01-01T00:00:00Z', '9999-12-31T23:59:59-23:59'])
      expect(await metricsOf(app, domain, daysAgo(1), end)).toEqual({ gmail: { sent: 1 } })
    expect(await metricsOf(app, domain, '2031-01-01T00:00:00Z', '2032-01-01T00:00:00Z')).toEqual({})
  })

  test.each([
    '2030-06-10T00:00:00Z',
    '2030-06-10t00:00:00z',
    '2030-06-10T02:00:00+02:00',
    '2030-06-09T18:30:00-05:30',
    '2030-06-10T14:00:00.000000+14:00',
    '2030-06-10T00:00:00-00:00',
    '2030-06-09T23:59:59.999000001Z',
  ])('takes date-times with any offset: %s is one moment', async (start) => {
    const domain = aDomain()
    await load(app, clock, [sent(domain, '2030-06-10T00:00:00Z'), sent(domain, '2030-06-09T23:59:59.999Z')])
    expect(await metricsOf(app, domain, start, WINDOW.end)).toEqual({ gmail: { sent: 1 } })
    expect(await metricsOf(app, domain, '2030-06-09T00:00:00Z', start)).toEqual({ gmail: { sent: 1 } })
  })

  test('takes a plus that nobody has encoded for a plus', async () => {
    const { status } = await app.app(
      '/email_analytics/provider_metrics?domain=x.com&start=2030-06-10T02:00:00+02:00&end=2030-06-11T02:00:00+02:00',
    )
    expect(status).toBe(200)
  })
})

describe('the window', () => {
  test('is exact: start is in it, end is not, at each edge of instant, hour, day, month and year', async () => {
    const edges = [
      '2029-12-31T23:59:59.999Z',
      '2030-01-01T00:00:00.000Z',
      '2030-01-31T23:59:59.999Z',
      '2030-02-01T00:00:00.000Z',
      '2030-02-28T23:00:00.000Z',
      '2030-03-01T00:00:00.000Z',
      // The nights in which clocks are put forward and back in Europe and America.
      '2030-03-10T07:00:00.000Z',
      '2030-03-31T01:00:00.000Z',
      '2030-03-31T01:30:00.000Z',
      '2029-10-28T01:00:00.000Z',
      '2029-11-04T06:30:00.000Z',
      '2030-06-14T12:59:59.999Z',
      '2030-06-14T13:00:00.000Z',
      '2030-06-14T13:00:00.001Z',
    ].sort()
    const domain = aDomain()
    await load(
      app,
      clock,
      edges.map((at) => sent(domain, at)),
    )
    for (const [i, start] of edges.entries())
      for (const [j, end] of edges.entries())
        if (i < j) expect(await metricsOf(app, domain, start, end)).toEqual({ gmail: { sent: j - i } })
  })

  test('of 365 days is exact to the millisecond at both ends', async () => {
    const domain = aDomain()
    await load(app, clock, [
      sent(domain, daysAgo(365, -1)),
      sent(domain, daysAgo(365)),
      sent(domain, daysAgo(0, -1)),
      sent(domain, daysAgo(0)),
    ])
    expect(await metricsOf(app, domain, daysAgo(365), daysAgo(0))).toEqual({ gmail: { sent: 2 } })
  })
})

describe('errors are lists of strings', () => {
  const path = metricsPath({ domain: 'example.com', ...WINDOW })
  const at = (appId: string, authorization?: string) =>
    app.request(`/apps/${appId}${path}`, authorization === undefined ? {} : { headers: { authorization } })

  test('400 for a malformed app id', async () => {
    for (const id of ['x', '123', `${app.tenant.id}0`, 'null'])
      expect(told(await at(id))).toEqual(invalid('app_id must be a UUID'))
  })

  test('404 for an app that is missing, and for one that the key cannot reach: the same, byte for byte', async () => {
    const other = await app.anotherTenant()
    const read = async (appId: string) => {
      const response = await fetch(`${app.url}/apps/${appId}${path}`, {
        headers: { authorization: `Key ${app.tenant.key}` },
      })
      const headers = [...response.headers].filter(([name]) => !/^(date|x-request-id)$/.test(name))
      return { status: response.status, headers, text: await response.text() }
    }
    const [missing, foreign] = [await read(newId()), await read(other.id)]
    expect(missing).toMatchObject({ status: 404, text: '{"errors":["App not found"]}' })
    expect(foreign).toEqual(missing)
  })

  test('401 without a key, with a bad one, and with a header of another kind', async () => {
    expect(told(await at(app.tenant.id, ''))).toEqual({
      status: 401,
      body: { errors: ["This operation requires 'Authorization' in the HTTP header"] },
    })
    for (const authorization of [`Key ${'x'.repeat(40)}`, `Key ${app.tenant.key.slice(0, -1)}`])
      expect(told(await at(app.tenant.id, authorization))).toEqual({
        status: 401,
        body: {
          errors: [expect.stringMatching(/^Access denied\. {2}/), expect.stringContaining('/docs/accounts-and-keys')],
          reference: [expect.any(String)],
        },
      })
  })

  test('403 for an organization key', async () => {
    expect(told(await at(app.tenant.id, `Key ${app.tenant.organizationKey}`))).toEqual({
      status: 403,
      body: { errors: ['This operation needs an app key'] },
    })
  })

  test('405 for another method', async () => {
    expect(told(await app.app(path, { method: 'DELETE' }))).toEqual({
      status: 405,
      body: { errors: ['Method not allowed'] },
    })
  })
})

test('503 is a list of strings too, while the database is not there', async () => {
  const unreachable = await startUnreachable()
  const path = metricsPath({ domain: 'example.com', ...WINDOW })
  const response = await fetch(`${unreachable.address}/apps/${NOBODY}${path}`, {
    headers: { authorization: `Key ${'k'.repeat(40)}` },
  })
  await unreachable.close()
  expect({ status: response.status, body: await response.json() }).toEqual({
    status: 503,
    body: { errors: ['Service temporarily unavailable'] },
  })
})

test('its description carries the interface version 11.6, and int64 for every count', async () => {
  const { body } = await app.request('/openapi.json')
  expect(body.info.version).toBe('11.6')
  const { get } = body.paths['/apps/{app_id}/email_analytics/provider_metrics']
  const { properties } = get.responses['200'].content['application/json'].schema.properties.providers.items
  expect(Object.keys(properties.metrics.properties)).toEqual(emailFacts)
  for (const count of Object.values(properties.metrics.properties))
    expect(count).toMatchObject({ type: 'integer', format: 'int64' })
  expect(Object.keys(get.responses)).toEqual(expect.arrayContaining(['200', '400', '401', '404', '429', '503']))
})

test('under /api/v1 it is the same', async () => {
  const query = metricsPath({ domain: 'example.com', ...WINDOW })
  expect(told(await app.request(`/api/v1/apps/${app.tenant.id.toUpperCase()}${query}`))).toEqual(EMPTY)
})
