// The only client for requests to addresses that customers give us: webhooks, attachments, and providers whose address
// an app may choose.
//
// It is node:https with our own sockets (dial.ts), because its behavior is fully under our control: no request is
// repeated or redirected automatically, no proxy from the environment is used, and `finish` tells when the last byte
// was written. That last point decides between "retry" and "it may have arrived".

import {
  type ClientRequestArgs,
  Agent as HttpAgent,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as requestHttp,
} from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import { createDial, DestinationForbidden, type Dial, type DialSettings } from './dial.ts'

export type OutboundSettings = DialSettings & {
  /**
   * Also allows plain http; `inside` allows it only to the networks of `allow`. Off by default, because messages would
   * cross the internet unencrypted.
   */
  allowHttp?: boolean | 'inside' | undefined
  /** Covers everything: name lookup, connection, request and answer. */
  timeoutMs?: number | undefined
}

export type OutboundRequest = {
  url: string
  method?: string | undefined
  headers?: Readonly<Record<string, string>> | undefined
  body?: string | Buffer | undefined
  /** The size limit for this answer. Defaults to 64 kB. */
  maxAnswerBytes?: number | undefined
  timeoutMs?: number | undefined
}

export type OutboundResult =
  /**
   * A whole answer or, with `isWhole` false, one whose body exceeded the limit. The body is for our code only and must
   * never be shown to customers.
   */
  | { kind: 'answer'; status: number; headers: IncomingHttpHeaders; body: Buffer; isWhole: boolean }
  /**
   * We do not send to this address, or the request is invalid. Nothing was written, and a retry would end the same way.
   */
  | { kind: 'refused'; reason: string }
  /** Not everything was written, so nobody can have acted on the request. */
  | { kind: 'unreached'; reason: string }
  /** Everything was written, but no whole answer came back. */
  | { kind: 'unanswered'; reason: string }

export type Outbound = {
  /** Never rejects. Each request in flight has its own connection, so callers have to limit concurrency. */
  request(request: OutboundRequest): Promise<OutboundResult>
  /** For protocols other than HTTP, with the same checks of the destination. */
  dial: Dial
  close(): Promise<void>
}

/** The options of ours that Node passes on from a request to the agent's `createConnection`. */
type RequestDestination = { host: string; port: number; origin: string }

const TIMEOUT_MS = 15_000
const MAX_ANSWER_BYTES = 65_536
const PORTS = new Set([80, 443, 8080, 8443])
/**
 * Below the 5 s after which Node's own servers close idle connections: a request that is sent just then could not be
 * told from a lost one.
 */
const IDLE_MS = 4_000

export function openOutbound(settings: OutboundSettings = {}): Outbound {
  const { timeoutMs = TIMEOUT_MS, allowHttp = false } = settings
  const dial = createDial(settings)
  const agents = { 'http:': agentOf(HttpAgent), 'https:': agentOf(HttpsAgent) }
  const underWay = new Set<Promise<OutboundResult>>()

  function agentOf(Agent: typeof HttpAgent | typeof HttpsAgent) {
    const isTls = Agent === HttpsAgent
    const agent = new Agent({ keepAlive: true, timeout: IDLE_MS })
    agent.createConnection = (options, done) => {
      const { host, port, origin } = options as ClientRequestArgs & RequestDestination
      const isInsideOnly = !isTls && allowHttp === 'inside'
      dial({
        host,
        port,
        origin,
        isTls,
        isPortAllowed: (port) => PORTS.has(port),
        requiresAllowedNetwork: isInsideOnly,
        timeoutMs,
      }).then(
        (socket) => done?.(null, socket),
        (error) => done?.(error, undefined as never),
      )
      return undefined
    }
    return agent
  }

  async function request(asked: OutboundRequest): Promise<OutboundResult> {
    try {
      const url = readUrl(asked.url, allowHttp !== false)
      return await exchange(asked, url, agents[url.protocol as keyof typeof agents], asked.timeoutMs ?? timeoutMs)
    } catch (error) {
      // Thrown before anything was sent: by us, or by Node for a header or method that cannot be written.
      return { kind: 'refused', reason: error instanceof DestinationForbidden ? error.message : 'request not valid' }
    }
  }

  return {
    dial,
    request(asked) {
      const result = request(asked)
      underWay.add(result)
      result.then(() => underWay.delete(result))
      return result
    },
    async close() {
      await Promise.all(underWay)
      for (const agent of Object.values(agents)) agent.destroy()
    },
  }
}

/**
 * The URL parser normalizes all spellings of an IPv4 address (decimal, octal, hex, short, full-width), so that the
 * normalized address is the one that is checked.
 */
function readUrl(text: string, allowHttp: boolean): URL {
  const url = URL.parse(text)
  if (!url) throw new DestinationForbidden('address not valid')
  if (url.protocol !== 'https:' && !(allowHttp && url.protocol === 'http:'))
    throw new DestinationForbidden('scheme not allowed')
  // Node would use the default port instead.
  if (url.port === '0') throw new DestinationForbidden('port not allowed')
  if (url.username !== '' || url.password !== '') throw new DestinationForbidden('credentials in the address')
  return url
}

function exchange(
  { method = 'POST', headers = {}, body = '', maxAnswerBytes = MAX_ANSWER_BYTES }: OutboundRequest,
  url: URL,
  agent: HttpAgent | HttpsAgent,
  timeoutMs: number,
): Promise<OutboundResult> {
  const isTls = url.protocol === 'https:'
  const options = {
    agent,
    method,
    headers: { ...headers, ...(method !== 'GET' && { 'content-length': String(Buffer.byteLength(body)) }) },
    protocol: url.protocol,
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port) || (isTls ? 443 : 80),
    path: `${url.pathname}${url.search}`,
    origin: url.origin,
  }
  const request = isTls ? requestHttps(options) : requestHttp(options)
  return new Promise((resolve) => {
    let isWritten = false
    const timer = setTimeout(() => request.destroy(new Error('timeout')), timeoutMs)
    const settle = (result: OutboundResult) => {
      clearTimeout(timer)
      resolve(result)
    }
    const fail = (error: Error) => {
      if (error instanceof DestinationForbidden) settle({ kind: 'refused', reason: error.message })
      else settle({ kind: isWritten ? 'unanswered' : 'unreached', reason: reasonOf(error) })
    }
    request.on('finish', () => {
      isWritten = true
    })
    request.on('error', fail)
    request.on('close', () => fail(new Error('ECONNRESET')))
    request.on('response', (answer) => collect(answer, maxAnswerBytes, settle, fail))
    request.end(body)
  })
}

function collect(
  answer: IncomingMessage,
  maxBytes: number,
  settle: (result: OutboundResult) => void,
  fail: (error: Error) => void,
) {
  const { statusCode: status = 0, headers } = answer
  const chunks: Buffer[] = []
  let bytes = 0
  const tell = (isWhole: boolean) =>
    settle({ kind: 'answer', status, headers, body: Buffer.concat(chunks).subarray(0, maxBytes), isWhole })
  answer.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes <= maxBytes) return
    // The status is known, and no more of the body is needed.
    tell(false)
    answer.destroy()
  })
  answer.on('end', () => (answer.complete ? tell(true) : fail(new Error('ECONNRESET'))))
  answer.on('error', fail)
}

/** Uses our own words, because the network's error may contain the address. */
function reasonOf(error: Error & { code?: string }): string {
  const code = error.code ?? error.message
  if (code === 'timeout' || code === 'ETIMEDOUT' || error.name === 'TimeoutError') return 'timeout'
  if (code === 'ENOTFOUND' || code.startsWith('EAI_')) return 'name not found'
  if (code.startsWith('HPE_')) return 'answer not understood'
  if (/CERT|SELF_SIGNED|ERR_TLS|ERR_SSL|EPROTO|UNABLE_TO/.test(code)) return 'certificate not accepted'
  if (code === 'ECONNREFUSED') return 'connection refused'
  return 'connection lost'
}
