// The same against Debian's dnsmasq on loopback (`apt-get install dnsmasq-base`). Without it these tests are left out, but
// never in CI.

import { spawn, spawnSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type TestDatabase, testDatabase } from '../../../test/database.ts'
import { createDnsResolver } from '../../channels/dns.ts'
import { virtualClock } from '../../lib/clock.ts'
import { classifyAddresses, lookUpHosts } from './hosts.ts'

const PROGRAM = '/usr/sbin/dnsmasq'
const isThere = process.env.CI !== undefined || spawnSync(PROGRAM, ['--version']).status === 0

const RECORDS = [
  '--mx-host=workspace.example,alt1.aspmx.l.google.com,30',
  '--mx-host=workspace.example,aspmx.l.google.com,10',
  '--mx-host=office.de,office-de.mail.protection.outlook.com,0',
  '--mx-host=guarded.fr,mx1.pphosted.com,10',
  '--mx-host=xn--bcher-kva.example,mail.protonmail.ch,10',
  '--address=/hostless.de/127.0.0.1',
]

async function freePort(): Promise<number> {
  const probe = createSocket('udp4').bind(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address()
  probe.close()
  await once(probe, 'close')
  return port
}

/** In the foreground, with nothing of the machine's own settings; it says when it has started. */
async function startDnsmasq() {
  const port = await freePort()
  const own = [
    '--keep-in-foreground',
    '--conf-file=/dev/null',
    '--no-resolv',
    '--no-hosts',
    '--pid-file=',
    '--user=root',
  ]
  const child = spawn(
    PROGRAM,
    [
      ...own,
      '--log-facility=-',
      '--listen-address=127.0.0.1',
      '--bind-interfaces',
      `--port=${port}`,
      '--local=/#/',
      ...RECORDS,
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  const lines: string[] = []
  for await (const line of createInterface(child.stderr)) {
    lines.push(line)
    if (/started/.test(line)) return { child, address: `127.0.0.1:${port}` }
  }
  throw new Error(`dnsmasq did not start: ${lines.join('\n')}`)
}

describe('mail hosts from dnsmasq', () => {
  let database: TestDatabase
  let dns: Awaited<ReturnType<typeof startDnsmasq>>
  beforeEach(({ skip }) => {
    if (!isThere) skip('needs dnsmasq (Debian: dnsmasq-base)')
  })
  beforeAll(async () => {
    if (!isThere) return
    dns = await startDnsmasq()
    database = await testDatabase()
  })
  afterAll(async () => {
    dns?.child.kill()
    await database?.close()
  })

  test('are found, the preferred one first, and domains without any go by their country', async () => {
    const resolver = createDnsResolver(dns.address)
    expect(await resolver.mx('workspace.example')).toEqual(['aspmx.l.google.com', 'alt1.aspmx.l.google.com'])
    expect(await resolver.mx('unknown.example')).toEqual([])
    const domains = ['workspace.example', 'office.de', 'guarded.fr', 'Bücher.example', 'hostless.de', 'unknown.jp']
    const { db } = database
    await lookUpHosts({ db, clock: virtualClock(), resolver }, domains)
    expect(
      await classifyAddresses(
        db,
        domains.map((domain) => `somebody@${domain}`),
      ),
    ).toEqual(['google_workspace', 'outlook_365', 'french', 'proton', 'german', 'japanese'])
  })

  test('cannot be had from a server that is not there', async () => {
    await expect(createDnsResolver(`127.0.0.1:${await freePort()}`).mx('workspace.example')).rejects.toThrow()
  })
})
