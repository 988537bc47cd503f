import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Answer, type Tenant, type TestApp, testApp } from '../../../test/app.ts'
import { startDns, type TestDns } from '../../../test/dns.ts'
import { anEmailContext, publish } from '../../../test/email.ts'
import { told } from '../../../test/users.ts'
import { OPERATOR } from '../../apps/audit/actor.ts'
import { virtualClock } from '../../lib/clock.ts'
import { sql } from '../../storage/sql.ts'
import type { EmailContext } from '../context.ts'
import { addDomain } from './change.ts'
import { findSendingDomain } from './find-sending-domain.ts'
import { recheckDomains } from './recheck.ts'
import { createRsaKeyPool } from './rsa-key-pool.ts'

const HELO = 'mail.bell.example'
const PUBLIC_URL = 'https://bell.example'
const clock = virtualClock('2030-01-01T09:00:00Z')
let server: TestApp
let dns: TestDns
let tenant: Tenant
let context: EmailContext
beforeAll(async () => {
  dns = await startDns()
  const mail = { route: 'direct' as const, helo: HELO, resolver: dns.address }
  server = await testApp({ clock, publicUrl: PUBLIC_URL, providers: { email: mail } })
  context = anEmailContext({ db: server.db, clock, serverEmail: mail, resolver: dns.address, publicUrl: PUBLIC_URL })
})
afterAll(async () => {
  await server.close()
  await dns.close()
})
beforeEach(async () => {
  dns.zones.clear()
  dns.silent.clear()
  dns.failing.clear()
  clock.advance({ hours: 1 })
  tenant = await server.anotherTenant()
})

const ask = (path: string, more: { method?: string; body?: object; key?: string } = {}): Promise<Answer> =>
  server.request(`/apps/${tenant.id}/email/domains${path}`, {
    ...(more.method && { method: more.method }),
    ...(more.body && { body: more.body }),
    headers: { authorization: `Key ${more.key ?? tenant.key}` },
  })
const add = (domain: string, more: object = {}) => ask('', { body: { domain, ...more } })
const verify = (domain: string) => ask(`/${domain}/verify`, { method: 'POST' })
const rotate = (domain: string, body?: object) => ask(`/${domain}/rotate`, { method: 'POST', ...(body && { body }) })
const put = (domain: string, body: object, key?: string) =>
  ask(`/${domain}`, { method: 'PUT', body, ...(key && { key }) })
const sending = (domain: string) => findSendingDomain(context, tenant.id, domain)

type Shown = { purpose: string; name: string; value: string; state: string; required: boolean; found: string | null }
const states = (body: { records: Shown[] }) =>
  Object.fromEntries(body.records.map(({ purpose, state }) => [purpose, state]))
const recordOf = (body: { records: Shown[] }, purpose: string) =>
  body.records.find((it) => it.purpose === purpose) as Shown

/** Added, published and seen. */
async function anActiveDomain(domain: string) {
  const { body } = await add(domain)
  publish(dns, body)
  expect((await verify(domain)).body.state).toBe('active')
  return body
}

const actions = async () =>
  (
    await server.db.query<{ action: string }>(
      sql`select action from audit_log where app_id = ${tenant.id} and target_type = 'email_domain' order by at, action`,
    )
  ).map(({ action }) => action)

describe('adding', () => {
  test('answers the records to set, and keeps the private keys sealed', async () => {
    const answer = await add('News.Example.COM.', { tracking_host: 'click.news.example.com' })
    expect(answer.status).toBe(201)
    expect(answer.body).toMatchObject({
      domain: 'news.example.com',
      state: 'pending',
      activated_by: null,
      return_path_host: 'bounce.news.example.com',
      tracking_host: 'click.news.example.com',
      checked_at: null,
    })
    const rsa = answer.body.dkim[0].selector
    expect(
      answer.body.records.map(({ purpose, type, name, required, state }: Shown & { type: string }) => [
        purpose,
        type,
        name,
        required,
        state,
      ]),
    ).toEqual([
      ['dkim', 'TXT', `${rsa}._domainkey.news.example.com`, true, 'unchecked'],
      ['dkim', 'TXT', `${answer.body.dkim[1].selector}._domainkey.news.example.com`, true, 'unchecked'],
      ['spf', 'TXT', 'bounce.news.example.com', true, 'unchecked'],
      ['return_path', 'MX', 'bounce.news.example.com', true, 'unchecked'],
      ['dmarc', 'TXT', '_dmarc.news.example.com', false, 'unchecked'],
      ['tracking', 'CNAME', 'click.news.example.com', true, 'unchecked'],
    ])
    expect(recordOf(answer.body, 'dkim').value).toMatch(/^v=DKIM1; k=rsa; p=[A-Za-z0-9+/]{390,}=*$/)
    expect(recordOf(answer.body, 'spf').value).toBe(`v=spf1 a:${HELO} ~all`)
    expect(recordOf(answer.body, 'return_path').value).toBe(`10 ${HELO}`)
    expect(recordOf(answer.body, 'tracking').value).toBe('bell.example')
    expect(JSON.stringify(answer.body)).not.toContain('PRIVATE')
    const [row] = await server.db.query<{ dkimKeys: { sealed: string }[] }>(
      sql`select dkim_keys from email_domains where app_id = ${tenant.id}`,
    )
    expect(row?.dkimKeys.map(({ sealed }) => sealed.slice(0, 3))).toEqual(['v1.', 'v1.'])
    expect(told(await ask('/news.example.com'))).toEqual({ status: 200, body: answer.body })
    expect(told(await ask(''))).toEqual({ status: 200, body: { domains: [answer.body] } })
    expect(await actions()).toEqual(['email_domain.add'])
  })

  test('may choose the host of the return path and the algorithms, and takes names in any alphabet', async () => {
    const answer = await add('bücher.example', {
      return_path_host: 'b.bücher.example',
      dkim: { algorithms: ['ed25519'] },
    })
    expect(answer.body).toMatchObject({ domain: 'xn--bcher-kva.example', return_path_host: 'b.xn--bcher-kva.example' })
    expect(answer.body.dkim).toMatchObject([{ algorithm: 'ed25519', state: 'active' }])
    expect(recordOf(answer.body, 'dkim').value).toMatch(/^v=DKIM1; k=ed25519; p=[A-Za-z0-9+/]{43}=$/)
  })

  test.each([
    [{ domain: 'localhost' }, 'domain must be the full name of a host, as news.example.com'],
    [{ domain: '127.0.0.1' }, 'domain must be the full name of a host, as news.example.com'],
    [{ domain: 'a b.example' }, 'domain must be the full name of a host, as news.example.com'],
    [{ domain: '' }, 'domain must not be empty'],
    [
      { domain: 'x.example', return_path_host: '-' },
      'return_path_host must be the full name of a host, as news.example.com',
    ],
    [{ domain: 'x.example', dkim: { algorithms: ['dsa'] } }, 'dkim.algorithms[0] must be "rsa" or "ed25519"'],
    [{}, 'domain is required'],
  ])('%j is refused', async (body, error) => {
    const answer = await ask('', { body })
    expect([answer.status, answer.body.errors[0]]).toEqual([400, error])
    expect((await ask('')).body).toEqual({ domains: [] })
  })

  test('happens once, also when asked for many times at once', async () => {
    const answers = await Promise.all(
      Array.from({ length: 4 }, () => add('once.example', { dkim: { algorithms: ['ed25519'] } })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409])
    expect(answers.find(({ status }) => status === 409)?.body).toEqual({ errors: ['The app has this domain already'] })
  })

  test('ends at 100, also when asked for at once', async () => {
    await server.db.query(sql`
      insert into email_domains (app_id, domain, state, created_at, updated_at)
      select ${tenant.id}, 'd' || n || '.example', 'pending', ${clock.now()}, ${clock.now()} from generate_series(1, 98) n`)
    const more = [1, 2, 3, 4].map((n) => add(`more${n}.example`, { dkim: { algorithms: ['ed25519'] } }))
    const answers = await Promise.all(more)
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 409, 409])
    expect(answers.find(({ status }) => status === 409)?.body).toEqual({
      errors: ['An app can have at most 100 email domains'],
    })
  })
})

describe('keys made ahead', () => {
  const ofStrangers = (name: string) => ({ domain: `${name}.stock.example`, dkim: { algorithms: ['rsa' as const] } })

  test('answer a request that adds a domain before another key is made', async () => {
    const ahead = Promise.withResolvers<void>()
    let orders = 0
    const makePair = async () => {
      // The first is made ahead; every other takes as long as the test does.
      if (++orders > 1) await ahead.promise
      return createRsaKeyPool(0).take('anybody')
    }
    const rsaKeys = createRsaKeyPool(1, makePair)
    rsaKeys.fill()
    while (rsaKeys.stats().spare === 0) await new Promise((resolve) => setImmediate(resolve))
    const added = await addDomain({ ...context, rsaKeys }, tenant.id, ofStrangers('first'), OPERATOR)
    expect(added.dkimKeys).toMatchObject([{ algorithm: 'rsa', public: expect.stringMatching(/^MII/) }])
    expect(orders).toBe(2)
    ahead.resolve()
    await rsaKeys.close()
  })
})

describe('verifying', () => {
  test('makes a domain active when all that is required is in DNS', async () => {
    const { body } = await add('full.example', { tracking_host: 'click.full.example' })
    expect(await sending('full.example')).toBeUndefined()
    expect(states((await verify('full.example')).body)).toEqual({
      dkim: 'missing',
      spf: 'missing',
      return_path: 'missing',
      dmarc: 'missing',
      tracking: 'missing',
    })
    publish(dns, body)
    const seen = await verify('full.example')
    expect(states(seen.body)).toEqual({ dkim: 'ok', spf: 'ok', return_path: 'ok', dmarc: 'ok', tracking: 'ok' })
    expect(seen.body).toMatchObject({ state: 'active', activated_by: 'check', checked_at: clock.now().toISOString() })
    expect(await sending('FULL.example')).toMatchObject({
      domain: 'full.example',
      returnPathHost: 'bounce.full.example',
      trackingUrl: 'https://click.full.example',
      dkim: [
        { algorithm: 'rsa', domain: 'full.example' },
        { algorithm: 'ed25519', domain: 'full.example' },
      ],
    })
    expect(await actions()).toEqual(['email_domain.activate', 'email_domain.add'])
  })

  test('needs no DMARC, and takes the policy of the domain above', async () => {
    const { body } = await add('news.above.example')
    publish(dns, body)
    dns.zones.delete('_dmarc.news.above.example')
    const seen = await verify('news.above.example')
    expect(seen.body.state).toBe('active')
    expect(states(seen.body).dmarc).toBe('missing')
    dns.set('_dmarc.above.example', { txt: ['v=DMARC1; p=reject; rua=mailto:x@above.example'] })
    expect(states((await verify('news.above.example')).body).dmarc).toBe('ok')
  })

  test.each([
    ['spf', 'bounce.wrong.example', { txt: ['v=spf1 include:other.example -all'] }],
    ['spf', 'bounce.wrong.example', { txt: [`v=spf1 a:${HELO} ~all`, 'v=spf1 -all'] }],
    ['return_path', 'bounce.wrong.example', { mx: [{ priority: 10, exchange: 'mx.other.example' }] }],
    ['dmarc', '_dmarc.wrong.example', { txt: ['v=DMARC1; p=maybe'] }],
    ['tracking', 'click.wrong.example', { cname: 'other.example' }],
  ])('tells a wrong %s record', async (purpose, name, zone) => {
    const { body } = await add('wrong.example', {
      tracking_host: 'click.wrong.example',
      dkim: { algorithms: ['ed25519'] },
    })
    publish(dns, body)
    dns.set(name, { ...dns.zones.get(name), ...zone })
    const seen = await verify('wrong.example')
    expect(states(seen.body)[purpose]).toBe('wrong')
    expect(seen.body.state).toBe(purpose === 'dmarc' ? 'active' : 'pending')
  })

  test('tells a DKIM record with another key, and shows what is there', async () => {
    const { body } = await add('key.example', { dkim: { algorithms: ['ed25519'] } })
    publish(dns, body)
    const { name, value } = recordOf(body, 'dkim')
    dns.set(name, { txt: [value.replace(/p=.{4}/, 'p=AAAA')] })
    const seen = await verify('key.example')
    expect(recordOf(seen.body, 'dkim')).toMatchObject({ state: 'wrong', found: expect.stringContaining('p=AAAA') })
    expect(seen.body.state).toBe('pending')
  })

  test('takes a return path that is another name of ours, and a tracking host with our addresses', async () => {
    const { body } = await add('alias.example', {
      tracking_host: 'click.alias.example',
      dkim: { algorithms: ['ed25519'] },
    })
    publish(dns, body)
    // It has nothing of its own then: the SPF is found at the name that it leads to.
    dns.set('bounce.alias.example', { cname: HELO })
    dns.set(HELO, { txt: [recordOf(body, 'spf').value] })
    dns.set('bell.example', { a: ['192.0.2.7'] })
    dns.set('click.alias.example', { a: ['192.0.2.7'] })
    expect((await verify('alias.example')).body.state).toBe('active')
  })

  test('does not take silence or a failure for a missing record', async () => {
    const { body } = await add('slow.example', { dkim: { algorithms: ['ed25519'] } })
    publish(dns, body)
    dns.silent.add('_dmarc.slow.example')
    dns.failing.add('bounce.slow.example')
    const seen = await verify('slow.example')
    expect(states(seen.body)).toMatchObject({ dmarc: 'unknown', spf: 'unknown', return_path: 'unknown', dkim: 'ok' })
    expect(seen.body.state).toBe('pending')
  })

  test('of a domain that is not there, or another app’s, is a 404', async () => {
    await add('mine.example', { dkim: { algorithms: ['ed25519'] } })
    tenant = await server.anotherTenant()
    for (const answer of [await verify('mine.example'), await ask('/mine.example'), await rotate('mine.example')])
      expect(told(answer)).toEqual({ status: 404, body: { errors: ['Email domain not found'] } })
  })
})

describe('the state', () => {
  test('is paused and active again, as long as the records are there', async () => {
    const body = await anActiveDomain('turns.example')
    expect((await put('turns.example', { state: 'paused' })).body.state).toBe('paused')
    expect(await sending('turns.example')).toBeUndefined()
    expect((await verify('turns.example')).body.state).toBe('paused')
    expect((await put('turns.example', { state: 'active' })).body.state).toBe('active')
    await put('turns.example', { state: 'paused' })
    const { name, value } = recordOf(body, 'spf')
    dns.zones.delete(name)
    expect(told(await put('turns.example', { state: 'active' }))).toEqual({
      status: 400,
      body: {
        errors: [`DNS has no TXT record ${name} with ${value}`, `DNS has no MX record ${name} with 10 ${HELO}`],
      },
    })
  })

  test('is forced by an organization key alone', async () => {
    await add('private.example', { dkim: { algorithms: ['ed25519'] } })
    const refused = await put('private.example', { state: 'active', force: true })
    expect(told(refused)).toEqual({
      status: 403,
      body: { errors: ['force is for organization keys and the command line'] },
    })
    const forced = await put('private.example', { state: 'active', force: true }, tenant.organizationKey)
    expect(forced.body).toMatchObject({ state: 'active', activated_by: 'force' })
    expect(await sending('private.example')).toBeDefined()
    clock.advance({ days: 1 })
    await recheckDomains(context)
    expect((await ask('/private.example')).body.state).toBe('active')
  })

  test.each([[{ state: 'pending' }], [{}], [{ state: 'active', force: 'yes' }]])('%j is refused', async (body) => {
    await add('state.example', { dkim: { algorithms: ['ed25519'] } })
    expect((await put('state.example', body)).status).toBe(400)
  })
})

describe('the daily look', () => {
  const notices = async () =>
    (await server.request(`/apps/${tenant.id}/notices`, { headers: { authorization: `Key ${tenant.key}` } })).body
      .notices

  test('makes a domain pending whose keys are gone, and says so once', async () => {
    const body = await anActiveDomain('gone.example')
    for (const { purpose, name } of body.records as Shown[]) if (purpose === 'dkim') dns.zones.delete(name)
    await Promise.all([recheckDomains(context), recheckDomains(context)])
    expect((await ask('/gone.example')).body).toMatchObject({ state: 'pending', activated_by: null })
    expect(await notices()).toMatchObject([{ kind: 'email.domain_failing', detail: { domain: 'gone.example' } }])
    expect(await sending('gone.example')).toBeUndefined()
    await recheckDomains(context)
    expect(await notices()).toHaveLength(1)
    publish(dns, body)
    expect((await verify('gone.example')).body.state).toBe('active')
  })

  test('leaves it active while one key is there, or nobody can say', async () => {
    const body = await anActiveDomain('half.example')
    dns.zones.delete(recordOf(body, 'dkim').name)
    await recheckDomains(context)
    expect((await ask('/half.example')).body.state).toBe('active')
    for (const { purpose, name } of body.records as Shown[]) if (purpose === 'dkim') dns.failing.add(name)
    await recheckDomains(context)
    expect((await ask('/half.example')).body.state).toBe('active')
    expect(await notices()).toEqual([])
  })
})

describe('new keys', () => {
  test('are published first, and sign once DNS shows them', async () => {
    const before = await anActiveDomain('rotating.example')
    const old = before.dkim.map(({ selector }: { selector: string }) => selector)
    const next = await rotate('rotating.example')
    expect(next.body.dkim.map(({ state }: { state: string }) => state)).toEqual(['active', 'active', 'next', 'next'])
    expect(next.body.state).toBe('active')
    expect((await sending('rotating.example'))?.dkim.map(({ selector }) => selector)).toEqual(old)

    const early = await rotate('rotating.example')
    expect(early.status).toBe(400)
    expect(early.body.errors).toHaveLength(2)

    publish(dns, next.body)
    const switched = await rotate('rotating.example')
    expect(switched.body.dkim.map(({ state }: { state: string }) => state)).toEqual([
      'active',
      'active',
      'retired',
      'retired',
    ])
    const signing = (await sending('rotating.example'))?.dkim.map(({ selector }) => selector)
    expect(signing).toEqual(next.body.dkim.slice(2).map(({ selector }: { selector: string }) => selector))
    const [row] = await server.db.query<{ dkimKeys: { state: string; sealed: string | null }[] }>(
      sql`select dkim_keys from email_domains where app_id = ${tenant.id}`,
    )
    expect(row?.dkimKeys.map(({ state, sealed }) => [state, sealed !== null])).toEqual([
      ['active', true],
      ['active', true],
      ['retired', false],
      ['retired', false],
    ])
    expect((await verify('rotating.example')).body.state).toBe('active')
    expect((await rotate('rotating.example')).body.dkim).toHaveLength(4)
  })

  test('are made once by many requests at once', async () => {
    await add('race.example', { dkim: { algorithms: ['ed25519'] } })
    const answers = await Promise.all(Array.from({ length: 4 }, () => rotate('race.example')))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect((await ask('/race.example')).body.dkim).toHaveLength(2)
  })
})

test('removing takes the domain and its keys away', async () => {
  await anActiveDomain('away.example')
  const remove = () => ask('/away.example', { method: 'DELETE' })
  expect(told(await remove())).toEqual({ status: 200, body: { success: true } })
  expect(told(await remove())).toEqual({ status: 404, body: { errors: ['Email domain not found'] } })
  expect(await sending('away.example')).toBeUndefined()
  expect(await actions()).toContain('email_domain.remove')
})

describe('where mail is caught', () => {
  const caught = () => anEmailContext({ db: server.db, clock })

  test('any domain becomes active by being used, and lets no mail out afterwards', async () => {
    const found = await findSendingDomain(caught(), tenant.id, 'any.example')
    expect(found).toEqual({
      domain: 'any.example',
      returnPathHost: 'bounce.any.example',
      trackingUrl: 'http://localhost:3000',
      dkim: [],
    })
    const [row] = await server.db.query(sql`
      select domain, state, activated_by from email_domains where app_id = ${tenant.id}`)
    expect(row).toEqual({ domain: 'any.example', state: 'active', activatedBy: 'catch' })
    expect(await sending('any.example')).toBeUndefined()
    expect((await ask('/any.example')).body).toMatchObject({ state: 'pending', activated_by: 'catch' })
    // Added in earnest it is the same domain.
    const { status, body } = await add('any.example', { dkim: { algorithms: ['ed25519'] } })
    expect(status).toBe(201)
    publish(dns, body)
    expect((await verify('any.example')).body).toMatchObject({ state: 'active', activated_by: 'check' })
  })

  test('one that is paused stays paused', async () => {
    await anActiveDomain('still.example')
    await put('still.example', { state: 'paused' })
    expect(await findSendingDomain(caught(), tenant.id, 'still.example')).toBeUndefined()
  })

  test('what is no name of a host is no domain', async () => {
    expect(await findSendingDomain(caught(), tenant.id, 'no host')).toBeUndefined()
  })
})
