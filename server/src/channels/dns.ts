// DNS queries, each with a time limit, to the system's servers or to the server that the settings name.

import { Resolver } from 'node:dns/promises'

/**
 * The result is empty if there is no such record; the promise rejects if no server could tell. Names are returned in
 * lower case, without a trailing dot.
 */
export type DnsResolver = {
  /** Each record's strings are joined. */
  txt(name: string): Promise<string[]>
  /**
   * Like Node's own: rejects with ENODATA if the domain has no MX records, with ENOTFOUND if there is no such domain.
   */
  resolveMx(name: string): Promise<{ exchange: string; priority: number }[]>
  /** In order of preference. A single empty name says that the domain accepts no email. */
  mx(name: string): Promise<string[]>
  cname(name: string): Promise<string[]>
  /** Both IPv4 and IPv6 addresses. */
  addresses(name: string): Promise<string[]>
}

const TRY_MS = 1_000
const TRIES = 2
/** The limit for one query, whatever the servers do. */
const MOST_MS = 4_000

/** There is no such name or record, or the name is one that cannot be queried. */
const ABSENT = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME'])

/** `server` has the form 127.0.0.1:5353. */
export function createDnsResolver(server?: string): DnsResolver {
  const dns = new Resolver({ timeout: TRY_MS, tries: TRIES })
  if (server !== undefined) dns.setServers([server])

  const ask = <Found>(question: Promise<Found[]>): Promise<Found[]> =>
    inTime(question).catch((error) => {
      if (ABSENT.has(error.code)) return []
      throw error
    })

  return {
    resolveMx: (name) => inTime(dns.resolveMx(name)),
    txt: async (name) => (await ask(dns.resolveTxt(name))).map((pieces) => pieces.join('')),
    mx: async (name) =>
      (await ask(dns.resolveMx(name))).sort((a, b) => a.priority - b.priority).map(({ exchange }) => plain(exchange)),
    cname: async (name) => (await ask(dns.resolveCname(name))).map(plain),
    addresses: async (name) => (await Promise.all([ask(dns.resolve4(name)), ask(dns.resolve6(name))])).flat(),
  }
}

async function inTime<Answer>(question: Promise<Answer>): Promise<Answer> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error('no answer in time')), MOST_MS)
  return Promise.race([question, late]).finally(() => clearTimeout(timer))
}

const plain = (name: string) => name.toLowerCase().replace(/\.$/, '')
