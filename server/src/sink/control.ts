// The control API of the box: shows what arrived, sets the pace and the faults, and creates browsers to send to. It
// listens on loopback only.

import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { BoxContext } from './box-context.ts'
import { type FaultName, type FaultRequest, faultNames, hasGoaway } from './faults.ts'
import { parseObject } from './json.ts'
import type { BrowserSubscription } from './push/browser.ts'
import { channelNames, type SinkChannelName } from './service.ts'

export type ControlSettings = BoxContext & { subscribe(): BrowserSubscription }
export type Control = { port: number; close(): Promise<void> }

type ControlAnswer = { status: number; body?: unknown }
type ControlBody = Record<string, unknown>

const MOST_SUBSCRIPTIONS = 10_000
const MOST_BYTES = 1_048_576
const MOST_RETRY_AFTER = 86_400

class InvalidControlRequest extends Error {}

export async function listenControl(settings: ControlSettings): Promise<Control> {
  const server = createServer(async (request, response) => {
    const { status, body } = await answer(request, settings).catch((error): ControlAnswer => {
      const message = error instanceof InvalidControlRequest ? error.message : 'the request cannot be read'
      return { status: 400, body: { errors: [message] } }
    })
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(body === undefined ? undefined : JSON.stringify(body))
  })
  server.listen(settings.port ?? 0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

async function answer(
  request: IncomingMessage,
  { deliveries, pace, faults, subscribe }: ControlSettings,
): Promise<ControlAnswer> {
  const { method = '', url = '/' } = request
  const { pathname, searchParams } = new URL(url, 'http://sink')
  switch (`${method} ${pathname}`) {
    case 'GET /deliveries':
      return { status: 200, body: deliveries.since(readSince(searchParams)) }
    case 'DELETE /deliveries':
      deliveries.clear()
      return { status: 204 }
    case 'POST /rate': {
      const { per_second } = await readBody(request)
      pace.set(readCount('per_second', per_second, 0, 1_000_000))
      return { status: 200, body: { per_second } }
    }
    case 'POST /faults': {
      const wish = readFault(await readBody(request))
      faults.set(wish)
      return { status: 200, body: { ...wish, fault: wish.fault?.name ?? null } }
    }
    case 'GET /faults':
      return { status: 200, body: faults.since(readSince(searchParams)) }
    case 'POST /subscriptions': {
      const count = readCount('count', (await readBody(request)).count ?? 1, 1, MOST_SUBSCRIPTIONS)
      const made = Array.from({ length: count }, subscribe)
      return {
        status: 201,
        body: made.map(({ endpoint, auth, p256dh }) => ({ token: endpoint, web_auth: auth, web_p256: p256dh })),
      }
    }
    default:
      return { status: 404, body: { errors: [`there is no ${method} ${pathname} here`] } }
  }
}

async function readBody(request: IncomingMessage): Promise<ControlBody> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request) {
    bytes += chunk.length
    if (bytes > MOST_BYTES) throw new InvalidControlRequest('the body is too large')
    chunks.push(chunk)
  }
  const body = parseObject(Buffer.concat(chunks))
  if (!body) throw new InvalidControlRequest('the body must be a JSON object')
  return body
}

function readCount(name: string, value: unknown, least: number, most: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most)
    throw new InvalidControlRequest(`${name} must be a whole number from ${least} to ${most}`)
  return value
}

function readSince(query: URLSearchParams): number {
  const since = query.get('since') ?? '0'
  if (!/^\d{1,15}$/.test(since)) throw new InvalidControlRequest('since must be a time in milliseconds since 1970')
  return Number(since)
}

function readFault({ channel, fault, count = null, to, retry_after }: ControlBody): FaultRequest {
  if (!channelNames.includes(channel as SinkChannelName))
    throw new InvalidControlRequest(`channel must be one of ${channelNames.join(', ')}`)
  if (fault !== null && !faultNames.includes(fault as FaultName))
    throw new InvalidControlRequest(`fault must be null, or one of ${faultNames.join(', ')}`)
  if (fault === 'goaway' && !hasGoaway(channel as SinkChannelName))
    throw new InvalidControlRequest('goaway is for web_push, apns and fcm alone')
  if (to !== undefined && !(Array.isArray(to) && to.every((it) => typeof it === 'string')))
    throw new InvalidControlRequest('to must be a list of addresses')
  const retryAfter = retry_after === undefined ? undefined : readCount('retry_after', retry_after, 0, MOST_RETRY_AFTER)
  return {
    channel: channel as SinkChannelName,
    fault: fault === null ? null : { name: fault as FaultName, retryAfter },
    count: count === null ? null : readCount('count', count, 1, 1_000_000_000),
    ...(to !== undefined && { to }),
  }
}
