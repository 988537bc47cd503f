// A stand-in of one provider, without its sockets: judges a request as the real one would, and answers in its words.

export const channelNames = ['web_push', 'apns', 'fcm', 'huawei', 'adm', 'wns', 'email', 'sms', 'webhook'] as const
export type SinkChannelName = (typeof channelNames)[number]

export type SinkRequest = {
  method: string
  path: string
  headers: Record<string, string | undefined>
  body: Buffer
  /** The certificate that the client showed, if any. */
  subject(): Record<string, string> | undefined
}

/** `afterMs` for one that is slow. */
export type SinkAnswer = { status: number; headers?: Record<string, string>; body?: string; afterMs?: number }

/** How a request goes wrong. */
export type SinkFailure =
  | SinkAnswer
  /** Taken up, and never answered. */
  | 'hang'
  /** Taken up, and answered late. */
  | 'slow'
  /** Taken up; then the stream is reset, or the connection cut, instead of an answer. */
  | 'reset'
  | 'cut'
  /** Taken up; half an answer, then the connection is cut. */
  | 'half'
  /** Taken up; an answer that comes byte by byte and does not end, or one that is very long and means nothing. */
  | 'trickle'
  | 'garbage'
  /** Not taken up. */
  | 'refuse'
  /** Not taken up: the connection is closed for this stream and all after it; with an error for those before it as well. */
  | 'goaway'
  | 'goaway with error'

/** What is left of that for the sockets to do. */
export type Reaction = Exclude<SinkFailure, 'slow'>

/** What every provider has a word for. */
export type RefusalName = 'unavailable' | 'rate_limited' | 'gone'

export type SinkService = {
  /** Whom a request is for. */
  addressOf(request: SinkRequest): string
  /** Undefined where the real one would take it. */
  check(request: SinkRequest): SinkAnswer | undefined
  accept(request: SinkRequest): SinkAnswer
}

/** One that delivers to somebody. */
export type ChannelService = SinkService & { channel: SinkChannelName; refusals: Record<RefusalName, () => SinkAnswer> }

/** The one that the client wanted to reach; Node's names its port even where it is the usual one. */
export const originOf = (headers: SinkRequest['headers']) =>
  URL.parse(`https://${headers[':authority'] ?? headers.host ?? ''}`)?.origin ?? ''

export const RETRY_AFTER = { 'retry-after': '2' }
export const SLOW_MS = 5_000

/** What becomes of a request, given what shall go wrong with it. */
export function react(
  { check, accept }: SinkService,
  request: SinkRequest,
  failure: SinkFailure | undefined,
): { reaction: Reaction; isTaken: boolean } {
  const isBefore = failure === 'refuse' || failure === 'goaway' || failure === 'goaway with error'
  if (isBefore || typeof failure === 'object') return { reaction: failure, isTaken: false }
  const refused = check(request)
  if (refused) return { reaction: refused, isTaken: false }
  const answer = accept(request)
  if (failure === 'slow') return { reaction: { ...answer, afterMs: SLOW_MS }, isTaken: true }
  return { reaction: failure ?? answer, isTaken: true }
}
