// The one place where a connection to an address that somebody gave us is opened. Names are resolved here, once; every address
// of the answer is judged; only those addresses are dialed; and where the socket ended up is judged again before a byte is sent.
// So a literal, a name with several addresses, and a name whose answer changes all pass the same judge.

import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls, createSecureContext, rootCertificates, type TLSSocket } from 'node:tls'
import { addressList } from '../lib/networks.ts'
import { ownProperty } from '../lib/own-property.ts'
import type { ProviderRoute } from './channel.ts'
import { type HostLookup, lookUpAddresses } from './lookup.ts'
import { isPublicAddress } from './public-address.ts'

export type DialSettings = {
  /** Networks (`10.1.0.0/16`, `127.0.0.1`) that may be reached although they are not public, on any port. */
  allow?: readonly string[] | undefined
  route?: ProviderRoute | undefined
  /** All addresses of a name; the system's resolver unless told. */
  lookup?: HostLookup | undefined
}

export type DialTarget = {
  /** A name, or an address without brackets. */
  host: string
  port: number
  isTls: boolean
  /** What `Route.connect` knows it by. */
  origin: string
  isPortAllowed(port: number): boolean
  /** Only to networks that were named, as what travels in the clear. */
  requiresAllowedNetwork?: boolean
  timeoutMs: number
}

export type Dial = {
  /** Rejects with `Refused`, or with whatever the network had to say; nothing was written then. */
  (target: DialTarget): Promise<Socket>
  /** TLS on a connection of its own, for protocols that begin in the clear. */
  secure(socket: Socket, peer: TlsPeer): Promise<TLSSocket>
  /** Whether the other end is in a network that was named. */
  isInAllowedNetwork(socket: Socket): boolean
}

export type TlsPeer = {
  host: string
  timeoutMs: number
  /** Whoever it is: keeps out those who only listen. */
  acceptsAnyCertificate?: boolean
}

/** We do not go there: another try would end the same way. */
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
    // A name with a dot at its end is the same name; certificates never have it.
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

/** The deadline is for the opening alone: an open socket may live longer. */
function opened(socket: Socket, event: 'connect' | 'secureConnect', deadline: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const giveUp = () => socket.destroy(deadline.reason)
    const onClose = () => settle(new Error('closed'))
    const onOpen = () => settle()
    const settle = (error?: Error) => {
      deadline.removeEventListener('abort', giveUp)
      socket.off(event, onOpen).off('error', settle).off('close', onClose)
      if (!error) return resolve()
      // What follows on a socket that nobody was given is of no interest, and must not end the process.
      socket.on('error', () => {})
      reject(error)
    }
    deadline.addEventListener('abort', giveUp)
    socket.on(event, onOpen).on('error', settle).on('close', onClose)
  })
}
