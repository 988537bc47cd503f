// Opens TLS connections to providers, with the authorities to trust, our own certificate, and the negotiated protocol.

import { isIP } from 'node:net'
import { connect, createSecureContext, getCACertificates, type SecureContext, type TLSSocket } from 'node:tls'
import type { ProviderRoute } from '../../channel.ts'
import { createDial, DestinationForbidden } from '../../dial.ts'
import { lookUpPublicAddresses } from '../../lookup.ts'
import { type ProviderReply, unsent } from './exchange.ts'

/** Our certificate for the provider, in PEM. */
export type ClientCertificate = { key: string; certificate: string }

export type OpenTlsSettings = {
  route?: ProviderRoute | undefined
  identity?: ClientCertificate | undefined
  /** In order of preference. */
  protocols: readonly ('h2' | 'http/1.1')[]
  timeoutMs: number
}

export type OpenTls = (origin: string) => Promise<TLSSocket>

/** The ports of push services. The address comes from a user's subscription, so others are refused. */
const isPortAllowed = (port: number) => port === 443 || port === 8443

export function createOpenTls({ route = {}, identity, protocols, timeoutMs }: OpenTlsSettings): OpenTls {
  const dial = createDial({ route: { connect: route.connect }, lookup: lookUpPublicAddresses })
  let secureContext: SecureContext | undefined
  // Created on first use, so that a certificate which OpenSSL rejects is reported as an outcome.
  const context = () => {
    secureContext ??= createSecureContext({
      ...(route.ca && { ca: [...getCACertificates('default'), route.ca] }),
      ...(identity && { key: identity.key, cert: identity.certificate }),
      minVersion: 'TLSv1.2',
    })
    return secureContext
  }

  return async (origin) => {
    const { hostname, port } = new URL(origin)
    const host = hostname.replace(/^\[|\]$/g, '')
    const target = { host, port: Number(port || 443), isTls: false, origin, isPortAllowed, timeoutMs }
    const trusted = needs(context)
    const socket = await dial(target)
    const name = host.replace(/\.$/, '')
    const secured = connect({
      socket,
      host: name,
      ...(isIP(name) === 0 && { servername: name }),
      ALPNProtocols: [...protocols],
      secureContext: trusted,
    })
    await shakenHands(secured, timeoutMs)
    return secured
  }
}

/** The files were parsed when they were uploaded. Anything that OpenSSL still rejects is for the app to fix. */
class InvalidClientCertificate extends Error {}
function needs(context: () => SecureContext): SecureContext {
  try {
    return context()
  } catch {
    throw new InvalidClientCertificate()
  }
}

function shakenHands(socket: TLSSocket, timeoutMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => socket.destroy(new Error('timeout')), timeoutMs)
    socket.once('secureConnect', () => {
      clearTimeout(timer)
      socket.off('close', onClose)
      resolve()
    })
    const onClose = () => {
      clearTimeout(timer)
      reject(new Error('closed'))
    }
    // This listener stays: errors after the handshake are reported by `close`, and must not end the process.
    socket.on('error', reject)
    socket.once('close', onClose)
  })
}

/** Alerts about our own certificate. With TLS 1.3, they arrive after the handshake. */
const REFUSED_IDENTITY = /ALERT_(BAD_CERTIFICATE|CERTIFICATE_|UNSUPPORTED_CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED)/

/** Uses our own words, because the system's errors contain addresses. */
export function describeConnectFailure(error: unknown): ProviderReply {
  if (error instanceof DestinationForbidden) return unsent('address', error.message)
  if (error instanceof InvalidClientCertificate) return unsent('identity', 'certificate not usable')
  const { code = '' } = error as { code?: string }
  if (REFUSED_IDENTITY.test(code)) return unsent('identity', 'certificate refused')
  if (code === 'ECONNREFUSED') return unsent('connection', 'connection refused')
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return unsent('connection', 'name not found')
  if (/CERT|ALTNAME|SELF_SIGNED|VERIFY|ISSUER/.test(code)) return unsent('connection', 'certificate not trusted')
  return unsent('connection', 'no connection')
}
