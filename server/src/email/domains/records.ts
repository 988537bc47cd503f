// The DNS records that a sending domain needs.

import { isIP } from 'node:net'
import type { EmailContext } from '../context.ts'
import type { ResolvedEmailRoute } from '../find-route.ts'
import { type EmailDomain, returnPathOf, type StoredDkimKey } from './domain.ts'

export const recordPurposes = ['dkim', 'spf', 'return_path', 'dmarc', 'tracking'] as const
export type RecordPurpose = (typeof recordPurposes)[number]

export type DnsRecord = {
  purpose: RecordPurpose
  type: 'TXT' | 'MX' | 'CNAME'
  name: string
  value: string
  /** Whether the domain needs the record in order to become active without force. */
  isRequired: boolean
  /** For DKIM records, the key that is published. */
  key?: StoredDkimKey
}

/** The key under which the result of a check is stored. */
export const checkKey = ({ purpose, name }: Pick<DnsRecord, 'purpose' | 'name'>) => `${purpose} ${name}`

export function recordsOf(
  { serverEmail, home }: Pick<EmailContext, 'serverEmail' | 'home'>,
  it: Pick<EmailDomain, 'domain' | 'returnPathHost' | 'trackingHost' | 'dkimKeys'>,
  route: ResolvedEmailRoute,
): DnsRecord[] {
  const returnPath = returnPathOf(it)
  return [
    ...it.dkimKeys.map(
      (key): DnsRecord => ({
        purpose: 'dkim',
        type: 'TXT',
        name: `${key.selector}._domainkey.${it.domain}`,
        value: `v=DKIM1; k=${key.algorithm}; p=${key.public}`,
        isRequired: key.state === 'active',
        key,
      }),
    ),
    {
      purpose: 'spf',
      type: 'TXT',
      name: returnPath,
      value: `v=spf1 ${senderOf(serverEmail.helo, route)} ~all`,
      // Only the relay's operator knows which machines it sends from.
      isRequired: route.kind !== 'relay',
    },
    { purpose: 'return_path', type: 'MX', name: returnPath, value: `10 ${serverEmail.helo}`, isRequired: true },
    {
      purpose: 'dmarc',
      type: 'TXT',
      name: `_dmarc.${it.domain}`,
      value: 'v=DMARC1; p=none',
      isRequired: false,
    },
    ...(it.trackingHost === null
      ? []
      : [
          {
            purpose: 'tracking' as const,
            type: 'CNAME' as const,
            name: it.trackingHost,
            value: new URL(home.url).hostname,
            isRequired: true,
          },
        ]),
  ]
}

/** The machine that receiving servers see, as an SPF term. */
function senderOf(helo: string, route: ResolvedEmailRoute): string {
  const host = route.kind === 'relay' ? route.host : helo
  const version = isIP(host)
  return version === 0 ? `a:${host}` : `ip${version}:${host}`
}
