// The only place that opens connections to addresses which customers or users gave us. Names are resolved here, once;
// every address in the answer is checked; only those addresses are dialed; and the address that the socket ended up at
// is checked again before a byte is sent. So a literal address, a name with several addresses, and a name whose answer
// changes all pass the same check.

import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls, createSecureContext, rootCertificates, type TLSSocket } from 'node:tls'
import { addressList } from '../lib/networks.ts'
import { ownProperty } from '../lib/own-property.ts'
import type { ProviderRoute } from './channel.ts'
import { type HostLookup, lookUpAddresses } from './lookup.ts'
import { isPublicAddress } from './public-address.ts'

export type DialSettings = {
  /** Networks (`10.1.0.0/16`, `127.0.0.1`) that may be reached on any port although they are not public. */
  allow?: readonly string[] | undefined
  route?: ProviderRoute | undefined
  /** Finds all addresses of a name. Defaults to the system's resolver. */
  lookup?: HostLookup | undefined
}

export type DialTarget = {
  /** A host name, or an address without brackets. */
  host: string
  port: number
  isTls: boolean
  /** The key of this destination in `ProviderRoute.connect`. */
  origin: string
  isPortAllowed(port: number): boolean
  /** Only addresses in the `allow` networks may be reached, as for unencrypted traffic. */
  requiresAllowedNetwork?: boolean
  timeoutMs: number
}

export type Dial = {
  /** Rejects with `DestinationForbidden`, or with the network's error. Nothing was written in either case. */
  (target: DialTarget): Promise<Socket>
  /** Starts TLS on an open connection, for protocols that begin unencrypted. */
  secure(socket: Socket, peer: TlsPeer): Promise<TLSSocket>
  /** Whether the peer's address is in one of the `allow` networks. */
  isInAllowedNetwork(socket: Socket): boolean
}

export type TlsPeer = {
  host: string
  timeoutMs: number
  /** Encrypts without verifying who the peer is, which only keeps out eavesdroppers. */
  acceptsAnyCertificate?: boolean
}

/** We do not connect to this destination. A retry would end the same way. */
export class DestinationForbidden extends Error {}

export function createDial({ allow = [], route = {}, lookup = lookUpAddresses }: DialSettings): Dial {
  const allowed = addressList(allow)
  const secureContext = route.ca && createSecureContext({ ca: [...rootCertificates, route.ca] })

  function judge(address: string, { port, isPortAllowed, requiresAllowedNetwork: isInsideOnly }: DialTarget) {
    if (allowed.includes(address)) return
    if (!isPublicAddress(address)) throw new DestinationForbidden('address not allowed')
    if (isInsideOnly) throw new DestinationForbidden('scheme not allowed')
    if (!isPortAllowed(port)) throw new DestinationForbidden('port not allowed')
  }

  async function secure(
    socket: Socket,
    { host, acceptsAnyCertificate: isAnybody = false }: Omit<TlsPeer, 'timeoutMs'>,
    deadline: AbortSignal,
  ) {
    // A name with a trailing dot is the same name, but certificates never contain the dot.
    const name = host.replace(/\.$/, '')
    const secured = connectTls({
      socket,
      host: name,
      ...(isIP(name) === 0 && { servername: name }),
      ...(secureContext && { secureContext }),
      rejectUnauthorized: !isAnybody,
    })
    await opened(secured, 'secureConnect', deadline)
    return secured
  }

  async function dial(target: DialTarget): Promise<Socket> {
    const { host, port, isTls, origin, timeoutMs } = target
    const deadline = AbortSignal.timeout(timeoutMs)
    const { connect = {} } = route
    const elsewhere = ownProperty(connect, origin) ?? ownProperty(connect, `${origin.split('//')[0]}//*`)
    const addresses = elsewhere ? [] : await findAddresses(host, lookup, deadline)
    for (const { address } of addresses) judge(address, target)

    const socket = elsewhere
      ? connectTcp(elsewhere)
      : connectTcp({ host, port, autoSelectFamily: true, lookup: (_name, _options, done) => done(null, addresses) })
    socket.setNoDelay(true)
    await opened(socket, 'connect', deadline)
    try {
      if (!elsewhere) judge(socket.remoteAddress ?? '', target)
      return isTls ? await secure(socket, target, deadline) : socket
    } catch (error) {
      socket.destroy()
      throw error
    }
  }

  return Object.assign(dial, {
    secure: (socket: Socket, peer: TlsPeer) => secure(socket, peer, AbortSignal.timeout(peer.timeoutMs)),
    isInAllowedNetwork: ({ remoteAddress = '' }: Socket) => allowed.includes(remoteAddress),
  })
}

async function findAddresses(host: string, lookup: HostLookup, deadline: AbortSignal) {
  const family = isIP(host)
  if (family !== 0) return [{ address: host, family }]
  const addresses = await Promise.race([lookup(host), aborted(deadline)])
  if (addresses.length === 0) throw new Error('ENOTFOUND')
  return addresses
}

const aborted = (signal: AbortSignal) =>
  new Promise<never>((_resolve, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
  )

/** The deadline covers only the opening: an open socket may live longer. */
function opened(socket: Socket, event: 'connect' | 'secureConnect', deadline: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const giveUp = () => socket.destroy(deadline.reason)
    const onClose = () => settle(new Error('closed'))
    const onOpen = () => settle()
    const settle = (error?: Error) => {
      deadline.removeEventListener('abort', giveUp)
      socket.off(event, onOpen).off('error', settle).off('close', onClose)
      if (!error) return resolve()
      // Later errors of a socket that nobody received do not matter, and must not end the process.
      socket.on('error', () => {})
      reject(error)
    }
    deadline.addEventListener('abort', giveUp)
    socket.on(event, onOpen).on('error', settle).on('close', onClose)
  })
}
