// Makers for tests about email.

import { createDnsResolver } from '../src/channels/dns.ts'
import { createEmailContext, type EmailContext, type ServerEmail } from '../src/email/context.ts'
import type { Clock } from '../src/lib/clock.ts'
import { newId } from '../src/lib/ids.ts'
import { secretBox } from '../src/lib/secrets.ts'
import type { Db } from '../src/storage/db.ts'
import type { TestDns } from './dns.ts'

/** What a worker beside the server has. Mail is caught, unless told otherwise; nobody is asked for DNS. */
export const anEmailContext = (parts: {
  db: Db
  clock: Clock
  serverEmail?: ServerEmail
  resolver?: string
  publicUrl?: string
}): EmailContext =>
  createEmailContext({
    db: parts.db,
    clock: parts.clock,
    newId,
    secrets: secretBox('the secret key of the tests'),
    resolver: createDnsResolver(parts.resolver ?? '127.0.0.1:1'),
    serverEmail: parts.serverEmail ?? { route: undefined, helo: 'mail.bell.example' },
    publicUrl: parts.publicUrl,
    port: 3000,
    mayReach: () => false,
  })

type Shown = { records: { type: string; name: string; value: string }[] }

/** Puts the records into DNS as the answer tells them. */
export function publish(dns: TestDns, { records }: Shown): void {
  for (const { type, name, value } of records) {
    const zone = { ...dns.zones.get(name) }
    if (type === 'TXT') zone.txt = [value]
    if (type === 'CNAME') zone.cname = value
    if (type === 'MX') {
      const [priority = '', exchange = ''] = value.split(' ')
      zone.mx = [{ priority: Number(priority), exchange }]
    }
    dns.set(name, zone)
  }
}
