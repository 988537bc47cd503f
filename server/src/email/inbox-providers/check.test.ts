import { expect, test } from 'vitest'
import { startDns } from '../../../test/dns.ts'
import { createDnsResolver } from '../../channels/dns.ts'
import { checkProviders } from './check.ts'
import { readProviders } from './providers.ts'

test('the list is compared with what DNS says of each domain', async () => {
  const dns = await startDns()
  const host = (exchange: string) => ({ mx: [{ priority: 1, exchange }] })
  dns.set('good.example', host('mx.good-hosts.example'))
  dns.set('moved.example', host('mx.other-hosts.example'))
  dns.set('own.example', host('mail.own.example'))
  dns.set('empty.example', {})
  dns.failing.add('broken.example')
  const list = readProviders({
    providers: {
      gmail: {
        domains: ['good.example', 'moved.example', 'own.example', 'empty.example', 'gone.example', 'broken.example'],
        mx_suffixes: ['good-hosts.example'],
      },
      proton: { mx_suffixes: ['other-hosts.example'] },
    },
  })
  const findings = await checkProviders(createDnsResolver(dns.address), list)
  await dns.close()
  expect(findings).toEqual([
    { domain: 'broken.example', provider: 'gmail', state: 'unanswered', hosts: [] },
    { domain: 'empty.example', provider: 'gmail', state: 'none', hosts: [] },
    { domain: 'gone.example', provider: 'gmail', state: 'none', hosts: [] },
    { domain: 'good.example', provider: 'gmail', state: 'agrees', hosts: ['mx.good-hosts.example'] },
    { domain: 'moved.example', provider: 'gmail', state: 'differs', says: 'proton', hosts: ['mx.other-hosts.example'] },
    { domain: 'own.example', provider: 'gmail', state: 'unknown', hosts: ['mail.own.example'] },
  ])
})
