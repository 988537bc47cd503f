import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type TestDatabase, testDatabase } from '../../../test/database.ts'
import { startDns, type TestDns } from '../../../test/dns.ts'
import { createDnsResolver } from '../../channels/dns.ts'
import { virtualClock } from '../../lib/clock.ts'
import { sql } from '../../storage/sql.ts'
import { classifyAddresses, deleteExpiredHosts, lookUpHosts } from './hosts.ts'
import { listedProviders, readProviders } from './providers.ts'

/** The hosts of a domain, each with its priority. */
const hosts = (domain: string, ...list: [priority: number, exchange: string][]) =>
  dns.set(domain, { mx: list.map(([priority, exchange]) => ({ priority, exchange })) })

let dns: TestDns
let database: TestDatabase
const clock = virtualClock('2030-01-01T09:00:00Z')
beforeAll(async () => {
  dns = await startDns()
  hosts('workspace.example', [30, 'alt1.aspmx.l.google.com'], [10, 'aspmx.l.google.com'])
  hosts('mixed.example', [20, 'mx1.emailsrvr.com'], [5, 'mail.protonmail.ch'])
  hosts('own.de', [10, 'mail.own.de'])
  hosts('without.de')
  hosts('gmail.com', [10, 'mx.icloud.com'])
  dns.failing.add('broken.de')
  database = await testDatabase()
})
afterAll(async () => {
  await dns.close()
  await database.close()
})
beforeEach(async () => {
  dns.asked.length = 0
  await database.db.query(sql`delete from mail_hosts`)
})

const context = () => ({ db: database.db, clock, resolver: createDnsResolver(dns.address) })
const lookUp = (...domains: string[]) => lookUpHosts(context(), domains)
const classOf = async (...domains: string[]) =>
  classifyAddresses(
    database.db,
    domains.map((domain) => `somebody@${domain}`),
  )

describe('looking up', () => {
  test('classifies domains by their preferred hosts, each domain asked once', async () => {
    await lookUp('workspace.example', 'WORKSPACE.example.', 'mixed.example', 'own.de', 'without.de', 'unknown.fr')
    expect(await classOf('Workspace.Example', 'mixed.example', 'own.de', 'without.de', 'unknown.fr')).toEqual([
      'google_workspace',
      'proton',
      'german',
      'german',
      'french',
    ])
    expect(dns.asked.toSorted()).toEqual([
      'MX mixed.example',
      'MX own.de',
      'MX unknown.fr',
      'MX without.de',
      'MX workspace.example',
    ])
  })

  test('asks nobody about domains that are known by name, or that are none', async () => {
    await lookUp('gmail.com', 'contoso.onmicrosoft.com', 'localhost', 'a b', '')
    expect(dns.asked).toEqual([])
    expect(await classOf('gmail.com', 'a b')).toEqual(['gmail', 'other'])
  })

  test('happens once in 24 hours, also where there are no hosts', async () => {
    await lookUp('workspace.example', 'without.de', 'unknown.fr')
    clock.advance({ hours: 23, minutes: 59 })
    await lookUp('workspace.example', 'without.de', 'unknown.fr')
    expect(dns.asked).toHaveLength(3)
    clock.advance({ minutes: 1 })
    await lookUp('workspace.example', 'without.de', 'unknown.fr')
    expect(dns.asked).toHaveLength(6)
  })

  test('that fails is no error, is not tried again for an hour, and takes nothing away', async () => {
    hosts('moving.example', [1, 'aspmx.l.google.com'])
    await lookUp('moving.example', 'broken.de')
    expect(await classOf('broken.de')).toEqual(['german'])
    dns.failing.add('moving.example')
    clock.advance({ minutes: 59 })
    await lookUp('broken.de')
    expect(dns.asked.filter((name) => name === 'MX broken.de')).toHaveLength(1)
    clock.advance({ hours: 24 })
    await lookUp('moving.example', 'broken.de')
    expect(dns.asked.filter((name) => name === 'MX broken.de')).toHaveLength(2)
    expect(await classOf('moving.example')).toEqual(['google_workspace'])
  })

  test('does not wait for a server that is silent, and leaves for another time what it did not come to', async () => {
    const asked: string[] = []
    const never = (domain: string) => {
      asked.push(domain)
      return new Promise<string[]>(() => {})
    }
    const domains = Array.from({ length: 1_000 }, (_, n) => `silent${n}.de`)
    await lookUpHosts({ ...context(), resolver: { mx: never } }, domains, { oneMs: 20, allMs: 60 })
    const failed = await database.db.query<{ domain: string }>(sql`
      select domain from mail_hosts
      where provider is null and fresh_until = ${new Date(clock.now().getTime() + 3_600_000)}`)
    expect(failed.map(({ domain }) => domain).sort()).toEqual(asked.toSorted())
    expect(asked.length).toBeGreaterThanOrEqual(50)
    expect(asked.length).toBeLessThan(1_000)
  })

  test('by several at once is as by one', async () => {
    await Promise.all(Array.from({ length: 4 }, () => lookUp('workspace.example', 'mixed.example', 'own.de')))
    expect(await classOf('workspace.example', 'mixed.example')).toEqual(['google_workspace', 'proton'])
  })

  test('goes by names of the operator', async () => {
    const providers = readProviders({ providers: { apple: { mx_suffixes: ['own.de'] } } }, listedProviders)
    await lookUpHosts({ ...context(), providers }, ['own.de'])
    expect(await classOf('own.de')).toEqual(['apple'])
  })
})

test('addresses are classified by what is known, in their order, and nobody is asked', async () => {
  await lookUp('workspace.example')
  dns.asked.length = 0
  expect(
    await classifyAddresses(database.db, [
      'a@gmail.com',
      'b@workspace.example',
      'c@own.de',
      'no address',
      'd@gmail.com',
    ]),
  ).toEqual(['gmail', 'google_workspace', 'german', 'other', 'gmail'])
  expect(await classifyAddresses(database.db, [])).toEqual([])
  expect(dns.asked).toEqual([])
})

test('what nobody asks for is forgotten after a month', async () => {
  await lookUp('workspace.example')
  const left = () => database.db.query(sql`select domain from mail_hosts`)
  await deleteExpiredHosts(database.db, new Date(clock.now().getTime() + 30 * 86_400_000))
  expect(await left()).toHaveLength(1)
  await deleteExpiredHosts(database.db, new Date(clock.now().getTime() + 32 * 86_400_000))
  expect(await left()).toHaveLength(0)
})
