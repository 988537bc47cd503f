// The hosts of mailboxes, and the names by which they are recognized. The built-in list is providers.json, which also
// describes its format; operators can add names of their own.

import { domainToASCII } from 'node:url'
import { ownProperty } from '../../lib/own-property.ts'
import listed from './providers.json' with { type: 'json' }

/** In the order in which the API lists them. */
export const inboxProviders = [
  'apple',
  'att',
  'canadian',
  'chinese',
  'comcast',
  'free_fr',
  'french',
  'german',
  'gmail',
  'google_workspace',
  'googlers',
  'inbox_lv',
  'italian',
  'japanese',
  'outlook_365',
  'outlook_eu',
  'outlook_us',
  'proton',
  'rackspace',
  'russian',
  'uk',
  'united_online',
  'yahoo_eu',
  'yahoo_us',
  'other_eu',
  'other_us',
  'other',
] as const
export type InboxProvider = (typeof inboxProviders)[number]

export const isInboxProvider = (name: unknown): name is InboxProvider =>
  (inboxProviders as readonly unknown[]).includes(name)

type ProviderNames = ReadonlyMap<string, InboxProvider>
/**
 * The names of each kind, and the provider that each belongs to. A gateway hides which provider hosts the mailboxes.
 */
export type ProviderList = {
  domains: ProviderNames
  domainSuffixes: ProviderNames
  mxSuffixes: ReadonlyMap<string, InboxProvider | 'gateway'>
  tlds: ProviderNames
}

const KINDS = { domains: 'domains', domain_suffixes: 'domainSuffixes', mx_suffixes: 'mxSuffixes' } as const
const HOST = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$/

/** Returns a domain as used in DNS: lower case, IDNA in ASCII, without a trailing dot. Undefined for anything else. */
export function readDomain(text: string): string | undefined {
  const bare = text.endsWith('.') ? text.slice(0, -1) : text
  const ascii = /^[\w.-]+$/.test(bare) ? bare.toLowerCase() : domainToASCII(bare)
  return HOST.test(ascii) ? ascii : undefined
}

/** Throws an error that says what to correct in the file. */
export function readProviders(given: unknown, base?: ProviderList): ProviderList {
  const list = {
    domains: new Map(base?.domains),
    domainSuffixes: new Map(base?.domainSuffixes),
    mxSuffixes: new Map(base?.mxSuffixes),
    tlds: new Map(base?.tlds),
  }
  const { providers } = asObject(given, 'the file')
  const seen = new Map<string, string>()
  for (const [provider, names] of Object.entries(asObject(providers, '"providers"'))) {
    if (!isInboxProvider(provider)) throw new Error(`"${provider}" is none of ${inboxProviders.join(', ')}`)
    for (const [kind, entries] of Object.entries(asObject(names, `"${provider}"`))) {
      const into = ownProperty(KINDS, kind)
      if (into === undefined)
        throw new Error(`"${provider}" has "${kind}", which is none of ${Object.keys(KINDS).join(', ')}`)
      for (const name of readNames(entries, `"${kind}" of "${provider}"`)) {
        const before = seen.get(`${kind} ${name}`)
        if (before !== undefined) throw new Error(`"${name}" stands in "${kind}" of "${before}" and of "${provider}"`)
        seen.set(`${kind} ${name}`, provider)
        list[into].set(name, provider)
      }
    }
  }
  return list
}

function readNames(entries: unknown, where: string): string[] {
  if (!Array.isArray(entries)) throw new Error(`${where} must be a list`)
  return entries.map((entry) => {
    const name = typeof entry === 'string' ? readDomain(entry) : undefined
    if (name === undefined) throw new Error(`${where} has ${JSON.stringify(entry)}, which is no domain`)
    return name
  })
}

function asObject(value: unknown, what: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error(`${what} must be an object`)
  return value as Record<string, unknown>
}

function readListed(): ProviderList {
  const { domains, domainSuffixes, mxSuffixes } = readProviders({ providers: listed.providers })
  const tlds = new Map<string, InboxProvider>()
  for (const [provider, names] of Object.entries(listed.tlds))
    for (const name of names) tlds.set(name, provider as InboxProvider)
  return { domains, domainSuffixes, mxSuffixes: withGateways(mxSuffixes), tlds }
}

/** A provider's entry for a gateway's name takes precedence over the gateway. */
const withGateways = (mxSuffixes: ProviderList['mxSuffixes']): ProviderList['mxSuffixes'] =>
  new Map([...listed.gateways.mx_suffixes.map((name) => [name, 'gateway'] as const), ...mxSuffixes])

export const listedProviders: ProviderList = readListed()
