// Readers for the settings that determine how providers are reached.

import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { ProviderRoute } from '../channels/channel.ts'
import type { ProviderSettings, ServerRelay } from '../channels/providers.ts'
import { parseNetwork } from '../lib/networks.ts'
import { toMail } from './read-email.ts'

type Connect = NonNullable<ProviderRoute['connect']>

/**
 * Accepts PEM, either with line breaks or with \n in their place, as in files of environment variables, or the name of
 * a PEM file.
 */
export function readCertificates(text: string): string {
  const pem = text.includes('-----BEGIN') ? text.replaceAll('\\n', '\n') : readFile(text)
  const found = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  if (found.length === 0 || !found.every(isCertificate)) throw new Error('must contain PEM certificates')
  return `${found.join('\n')}\n`
}

function readFile(name: string): string {
  try {
    return readFileSync(name, 'utf8')
  } catch {
    throw new Error(`must be a PEM file or its content; "${name}" cannot be read`)
  }
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem) !== undefined
  } catch {
    return false
  }
}

const OVERRIDE = /^([a-z]+:\/\/(?:\*|[^\s/=*]+))=(?:\[([0-9a-f:.]+)\]|([\w.-]+)):(\d{1,5})$/i

export function readConnect(text: string): Connect {
  const entries = text.split(',').map((entry) => {
    const [, origin = '', v6, name, port] = OVERRIDE.exec(entry.trim()) ?? []
    if (!URL.canParse(origin.replace('*', 'any')) || Number(port) > 65_535)
      throw new Error(
        `must be a list of origin=host:port, such as https://api.push.apple.com=127.0.0.1:7001; "${entry.trim()}" is not valid`,
      )
    return [plainOrigin(origin), { host: v6 ?? name ?? '', port: Number(port) }] as const
  })
  return Object.fromEntries(entries)
}

/** Normalizes an origin as the channels write it: in lower case, and without the default port. */
function plainOrigin(text: string): string {
  const isWild = text.endsWith('*')
  return isWild || !/^https?:/i.test(text) ? text.toLowerCase() : new URL(text).origin
}

export function readNetworks(text: string): string[] {
  const networks = text.split(',').map((it) => it.trim())
  const wrong = networks.find((it) => !parseNetwork(it))
  if (wrong !== undefined)
    throw new Error(`must be a list of networks, such as 10.0.0.0/8,127.0.0.1; "${wrong}" is not valid`)
  return networks
}

export function readVapidSubject(text: string): string {
  if (/^mailto:[^\s@]+@[^\s@]+$/.test(text) || /^https:\/\/[^\s]+$/.test(text)) return text
  throw new Error('must be a URL that begins with mailto: or https://')
}

export type ProviderParts = {
  publicUrl: string | undefined
  providerCa: string | undefined
  providerConnect: Connect | undefined
  outboundAllow: string[] | undefined
  outboundAllowHttp: boolean
  twilioUrl: string
  vapidSubject: string | undefined
  smtpUrl: ServerRelay | 'direct' | undefined
  mailHelo: string | undefined
  resolver: string | undefined
}

export function toProviders(parts: ProviderParts): ProviderSettings {
  const { publicUrl, providerCa: ca, providerConnect: connect, outboundAllow: allow, vapidSubject } = parts
  const route = { ca, connect }
  return {
    route,
    outbound: { route, allow, allowHttp: parts.outboundAllowHttp && 'inside' },
    twilioUrl: parts.twilioUrl,
    vapidSubject: vapidSubject ?? (publicUrl?.startsWith('https:') ? publicUrl : 'mailto:admin@carillon.invalid'),
    email: toMail(parts),
  }
}
