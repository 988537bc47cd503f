// The DNS records that a sending domain needs.

import { isIP } from 'node:net'
import type { EmailContext } from '../context.ts'
import type { MailWay } from '../find-route.ts'
import { type EmailDomain, type KeptKey, returnPathOf } from './domain.ts'

export const purposes = ['dkim', 'spf', 'return_path', 'dmarc', 'tracking'] as const
export type Purpose = (typeof purposes)[number]

export type DnsRecord = {
  purpose: Purpose
  type: 'TXT' | 'MX' | 'CNAME'
  name: string
  value: string
  /** Without it the domain does not become active by itself. */
  isRequired: boolean
  /** Of DKIM: which key. */
  key?: KeptKey
}

/** What a check is kept under. */
export const checkName = ({ purpose, name }: Pick<DnsRecord, 'purpose' | 'name'>) => `${purpose} ${name}`

export function recordsOf(
  { mail, home }: Pick<EmailContext, 'mail' | 'home'>,
  it: Pick<EmailDomain, 'domain' | 'returnPathHost' | 'trackingHost' | 'dkimKeys'>,
  way: MailWay,
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
      value: `v=spf1 ${senderOf(mail.helo, way)} ~all`,
      // Which machines a relay sends from is for its owner to say.
      isRequired: way.kind !== 'relay',
    },
    { purpose: 'return_path', type: 'MX', name: returnPath, value: `10 ${mail.helo}`, isRequired: true },
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

/** The machine that receiving servers will see, in the words of SPF. */
function senderOf(helo: string, way: MailWay): string {
  const host = way.kind === 'relay' ? way.host : helo
  const version = isIP(host)
  return version === 0 ? `a:${host}` : `ip${version}:${host}`
}
