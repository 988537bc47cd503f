// Checks whether the records of a domain are in DNS. Each query has a time limit; when DNS gives no answer, the record
// is `unknown` and never `missing`.

import type { EmailResolver } from '../context.ts'
import type { RecordCheck, RecordChecks } from './domain.ts'
import { checkKey, type DnsRecord } from './records.ts'

export async function checkRecords(resolver: EmailResolver, records: readonly DnsRecord[]): Promise<RecordChecks> {
  const checks = await Promise.all(
    records.map(async (record) => [checkKey(record), await checkRecord(resolver, record)] as const),
  )
  return Object.fromEntries(checks)
}

async function checkRecord(resolver: EmailResolver, record: DnsRecord): Promise<RecordCheck> {
  try {
    return await RECORD_CHECKERS[record.purpose](resolver, record)
  } catch {
    return { state: 'unknown', found: null }
  }
}

type RecordChecker = (resolver: EmailResolver, record: DnsRecord) => Promise<RecordCheck>

const MISSING: RecordCheck = { state: 'missing', found: null }
/** Limits what is shown, because a record of somebody else may contain anything. */
const MAX_SHOWN_LENGTH = 500
const toCheck = (isOk: boolean, found: readonly string[]): RecordCheck => ({
  state: isOk ? 'ok' : 'wrong',
  found: found.join(' | ').slice(0, MAX_SHOWN_LENGTH),
})

const checkSpf: RecordChecker = async (resolver, { name, value }) => {
  const found = (await resolver.txt(name)).filter((text) => /^v=spf1(\s|$)/i.test(text))
  if (found.length === 0) return MISSING
  // Receivers treat two SPF records as an error, as if there were none.
  const asked = value.split(' ')[1] as string
  const terms = (found[0] as string).toLowerCase().split(/\s+/)
  return toCheck(found.length === 1 && (terms.includes(asked) || terms.includes(`+${asked}`)), found)
}

const checkDkim: RecordChecker = async (resolver, { name, key }) => {
  const found = await resolver.txt(name)
  if (found.length === 0) return MISSING
  const isOurs = found.some((text) => {
    const tags = parseTags(text)
    return tags.get('p') === key?.public && (tags.get('k') ?? 'rsa') === key?.algorithm
  })
  return toCheck(isOurs, found)
}

/** Finds the policy of the domain, or of the nearest parent domain that has one. */
const checkDmarc: RecordChecker = async (resolver, { name }) => {
  const labels = name.split('.').slice(1)
  for (let from = 0; labels.length - from >= 2; from++) {
    const found = await resolver.txt(['_dmarc', ...labels.slice(from)].join('.'))
    const policies = found.filter((text) => /^v=DMARC1\s*(;|$)/i.test(text))
    if (policies.length === 0) continue
    const policy = parseTags(policies[0] as string).get('p')
    return toCheck(policies.length === 1 && ['none', 'quarantine', 'reject'].includes(policy ?? ''), policies)
  }
  return MISSING
}

/** Bounces must reach this server: through an MX record, or because the name is an alias of the server's. */
const checkReturnPath: RecordChecker = async (resolver, { name, value }) => {
  const host = value.split(' ')[1] as string
  const [mx, cname] = await Promise.all([resolver.mx(name), resolver.cname(name)])
  const found = [...mx, ...cname]
  return found.length === 0 ? MISSING : toCheck(found.includes(host), found)
}

/**
 * The name must be an alias of the server's. Where a DNS provider flattens the alias into addresses, at least one
 * address must be the same.
 */
const checkTracking: RecordChecker = async (resolver, { name, value }) => {
  const cname = await resolver.cname(name)
  if (cname.includes(value)) return toCheck(true, cname)
  const [there, here] = await Promise.all([resolver.addresses(name), resolver.addresses(value)])
  const found = [...cname, ...there]
  return found.length === 0
    ? MISSING
    : toCheck(
        there.some((address) => here.includes(address)),
        found,
      )
}

const RECORD_CHECKERS: Record<DnsRecord['purpose'], RecordChecker> = {
  spf: checkSpf,
  dkim: checkDkim,
  dmarc: checkDmarc,
  return_path: checkReturnPath,
  tracking: checkTracking,
}

/** Parses `v=DKIM1; k=rsa; p=…`, with whitespace anywhere. */
const parseTags = (text: string) =>
  new Map(
    text.split(';').map((tag) => {
      const equals = tag.indexOf('=')
      return [tag.slice(0, equals).trim().toLowerCase(), tag.slice(equals + 1).replaceAll(/\s/g, '')] as const
    }),
  )
