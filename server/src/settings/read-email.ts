import { isIP } from 'node:net'
import type { ServerEmailSettings, ServerRelay } from '../channels/providers.ts'

const FORM = 'must be smtp://user:password@host:port, smtps://… or direct:'
const TLS = ['starttls', 'opportunistic', 'none'] as const
const MOST_CONNECTIONS = 100

/** Accepts `smtp[s]://user:password@host:port?pool=10&rate=50&tls=none&catcher=true`, or `direct:`. */
export function readSmtpUrl(text: string): ServerRelay | 'direct' {
  if (text === 'direct:' || text === 'direct') return 'direct'
  const url = URL.parse(text)
  if (!url || !['smtp:', 'smtps:'].includes(url.protocol) || url.hostname === '') throw new Error(FORM)
  const isImplicit = url.protocol === 'smtps:'
  const query = url.searchParams
  const unknown = [...query.keys()].find((name) => !['pool', 'rate', 'tls', 'catcher'].includes(name))
  if (unknown !== undefined)
    throw new Error(`has an unknown parameter "${unknown}"; allowed are pool, rate, tls and catcher`)
  const auth = url.username === '' ? undefined : { user: decoded(url.username), password: decoded(url.password) }
  const perSecond = number(query, 'rate', 100_000)
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port) || (isImplicit ? 465 : 587),
    tls: isImplicit ? 'implicit' : readTls(query.get('tls'), auth !== undefined),
    auth,
    connections: number(query, 'pool', MOST_CONNECTIONS) ?? 10,
    perSecond,
    isCatcher: ['true', 'yes', '1', 'on'].includes(query.get('catcher') ?? ''),
  }
}

/** By default TLS is required with a password; without one it is used if the relay offers it. */
function readTls(given: string | null, hasPassword: boolean): ServerRelay['tls'] {
  if (given === null) return hasPassword ? 'starttls' : 'opportunistic'
  if (!TLS.includes(given as (typeof TLS)[number])) throw new Error(`must have tls set to one of ${TLS.join(', ')}`)
  return given as ServerRelay['tls']
}

function number(query: URLSearchParams, name: string, most: number): number | undefined {
  const text = query.get(name)
  if (text === null) return undefined
  const value = Number(text)
  if (!/^\d{1,9}$/.test(text) || value < 1 || value > most)
    throw new Error(`must have ${name} set to an integer from 1 to ${most}`)
  return value
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new Error('has a user name or password with an invalid % escape; write % as %25')
  }
}

export function readResolver(text: string): string {
  const [, v6, v4, port = '53'] = /^(?:\[([0-9a-f:.]+)\]|([\d.]+))(?::(\d{1,5}))?$/i.exec(text) ?? []
  const address = v6 ?? v4 ?? text
  if (isIP(address) === 0 || Number(port) < 1 || Number(port) > 65_535)
    throw new Error('must be the address of a DNS server, such as 127.0.0.1 or 127.0.0.1:5353')
  return isIP(address) === 6 ? `[${address}]:${port}` : `${address}:${port}`
}

const HOST = /^(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

export function readHelo(text: string): string {
  const name = text.toLowerCase()
  if (!HOST.test(name) || isIP(name) !== 0)
    throw new Error('must be a fully qualified host name, such as mail.example.com')
  return name
}

/** The host name for SMTP greetings if the operator has set none. */
export const NAMELESS = 'localhost.localdomain'

export function toMail(parts: {
  publicUrl: string | undefined
  smtpUrl: ServerRelay | 'direct' | undefined
  resolver: string | undefined
  mailHelo: string | undefined
}): ServerEmailSettings {
  const host = parts.publicUrl === undefined ? '' : new URL(parts.publicUrl).hostname
  const named = HOST.test(host) && isIP(host) === 0 ? host : NAMELESS
  return { route: parts.smtpUrl, helo: parts.mailHelo ?? named, resolver: parts.resolver }
}
