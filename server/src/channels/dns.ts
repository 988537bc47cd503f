// Questions to DNS, with a time limit each: of the system's servers, or of the one that the settings name.

import { Resolver } from 'node:dns/promises'

/** What is not there is an empty list; rejects when nobody could say. Names come back in lower case, without the dot at their end. */
export type DnsResolver = {
  /** Each record joined from its pieces. */
  txt(name: string): Promise<string[]>
  /** As Node has it: rejects with ENODATA where a domain has none, with ENOTFOUND where there is no such domain. */
  resolveMx(name: string): Promise<{ exchange: string; priority: number }[]>
  /** By preference. A single empty name says that the domain takes no mail. */
  mx(name: string): Promise<string[]>
  cname(name: string): Promise<string[]>
  /** Of both kinds. */
  addresses(name: string): Promise<string[]>
}

const TRY_MS = 1_000
const TRIES = 2
/** For one question, whatever the servers do. */
const MOST_MS = 4_000

/** No such name, no such record, or a name that no server can be asked for. */
const ABSENT = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME'])

/** `server` as 127.0.0.1:5353. */
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
