// Whether the records of a domain are in DNS. Each question has a time limit; what nobody could answer is `unknown`, never `missing`.

import type { Resolver } from '../context.ts'
import type { Check, Checks } from './domain.ts'
import { checkName, type DnsRecord } from './records.ts'

export async function checkRecords(resolver: Resolver, records: readonly DnsRecord[]): Promise<Checks> {
  const checks = await Promise.all(
    records.map(async (record) => [checkName(record), await checkRecord(resolver, record)] as const),
  )
  return Object.fromEntries(checks)
}

async function checkRecord(resolver: Resolver, record: DnsRecord): Promise<Check> {
  try {
    return await CHECKS[record.purpose](resolver, record)
  } catch {
    return { state: 'unknown', found: null }
  }
}

type Checker = (resolver: Resolver, record: DnsRecord) => Promise<Check>

const MISSING: Check = { state: 'missing', found: null }
/** What is shown of it; a name of others may hold anything. */
const MOST_SHOWN = 500
const judged = (isOk: boolean, found: readonly string[]): Check => ({
  state: isOk ? 'ok' : 'wrong',
  found: found.join(' | ').slice(0, MOST_SHOWN),
})

const checkSpf: Checker = async (resolver, { name, value }) => {
  const found = (await resolver.txt(name)).filter((text) => /^v=spf1(\s|$)/i.test(text))
  if (found.length === 0) return MISSING
  // Two of them are an error that receivers take for none.
  const asked = value.split(' ')[1] as string
  const terms = (found[0] as string).toLowerCase().split(/\s+/)
  return judged(found.length === 1 && (terms.includes(asked) || terms.includes(`+${asked}`)), found)
}

const checkDkim: Checker = async (resolver, { name, key }) => {
  const found = await resolver.txt(name)
  if (found.length === 0) return MISSING
  const isOurs = found.some((text) => {
    const tags = tagsOf(text)
    return tags.get('p') === key?.public && (tags.get('k') ?? 'rsa') === key?.algorithm
  })
  return judged(isOurs, found)
}

/** The policy of the domain, or of the nearest one above it that has any. */
const checkDmarc: Checker = async (resolver, { name }) => {
  const labels = name.split('.').slice(1)
  for (let from = 0; labels.length - from >= 2; from++) {
    const found = await resolver.txt(['_dmarc', ...labels.slice(from)].join('.'))
    const policies = found.filter((text) => /^v=DMARC1\s*(;|$)/i.test(text))
    if (policies.length === 0) continue
    const policy = tagsOf(policies[0] as string).get('p')
    return judged(policies.length === 1 && ['none', 'quarantine', 'reject'].includes(policy ?? ''), policies)
  }
  return MISSING
}

/** Mail for it reaches us: by its own MX, or because it is another name of ours. */
const checkReturnPath: Checker = async (resolver, { name, value }) => {
  const host = value.split(' ')[1] as string
  const [mx, cname] = await Promise.all([resolver.mx(name), resolver.cname(name)])
  const found = [...mx, ...cname]
  return found.length === 0 ? MISSING : judged(found.includes(host), found)
}

/** Another name of ours, or, where a provider of DNS writes addresses in its place, one that leads to the same machine. */
const checkTracking: Checker = async (resolver, { name, value }) => {
  const cname = await resolver.cname(name)
  if (cname.includes(value)) return judged(true, cname)
  const [there, here] = await Promise.all([resolver.addresses(name), resolver.addresses(value)])
  const found = [...cname, ...there]
  return found.length === 0
    ? MISSING
    : judged(
        there.some((address) => here.includes(address)),
        found,
      )
}

const CHECKS: Record<DnsRecord['purpose'], Checker> = {
  spf: checkSpf,
  dkim: checkDkim,
  dmarc: checkDmarc,
  return_path: checkReturnPath,
  tracking: checkTracking,
}

/** `v=DKIM1; k=rsa; p=…`, with blanks wherever somebody put them. */
const tagsOf = (text: string) =>
  new Map(
    text.split(';').map((tag) => {
      const equals = tag.indexOf('=')
      return [tag.slice(0, equals).trim().toLowerCase(), tag.slice(equals + 1).replaceAll(/\s/g, '')] as const
    }),
  )
