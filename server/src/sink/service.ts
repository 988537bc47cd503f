// A stand-in for one provider, without its sockets: checks a request as the real provider would, and answers in the
// provider's format.

export const channelNames = ['web_push', 'apns', 'fcm', 'huawei', 'adm', 'wns', 'email', 'sms', 'webhook'] as const
export type SinkChannelName = (typeof channelNames)[number]

export type SinkRequest = {
  method: string
  path: string
  headers: Record<string, string | undefined>
  body: Buffer
  /** The certificate that the client presented, if any. */
  subject(): Record<string, string> | undefined
}

/** `afterMs` delays the answer. */
export type SinkAnswer = { status: number; headers?: Record<string, string>; body?: string; afterMs?: number }

/** How a request fails. */
export type SinkFailure =
  | SinkAnswer
  /** Accepted, but never answered. */
  | 'hang'
  /** Accepted, but answered late. */
  | 'slow'
  /** Accepted; then the stream is reset or the connection closed, instead of an answer. */
  | 'reset'
  | 'cut'
  /** Accepted; then the connection is closed after half an answer. */
  | 'half'
  /** Accepted; the answer arrives byte by byte and never ends, or is very long and meaningless. */
  | 'trickle'
  | 'garbage'
  /** Not accepted. */
  | 'refuse'
  /**
   * Not accepted: the connection is closed for this stream and all later ones; with an error, for earlier ones as well.
   */
  | 'goaway'
  | 'goaway with error'

/** What the sockets have to do. */
export type Reaction = Exclude<SinkFailure, 'slow'>

/** Refusals that every provider can express. */
export type RefusalName = 'unavailable' | 'rate_limited' | 'gone'

export type SinkService = {
  /** The address that a request is for. */
  addressOf(request: SinkRequest): string
  /** Returns undefined if the real provider would accept the request. */
  check(request: SinkRequest): SinkAnswer | undefined
  accept(request: SinkRequest): SinkAnswer
}

/** A stand-in that delivers to recipients. */
export type ChannelService = SinkService & { channel: SinkChannelName; refusals: Record<RefusalName, () => SinkAnswer> }

/** The origin that the client requested. Node's clients include the port even if it is the default one. */
export const originOf = (headers: SinkRequest['headers']) =>
  URL.parse(`https://${headers[':authority'] ?? headers.host ?? ''}`)?.origin ?? ''

export const RETRY_AFTER = { 'retry-after': '2' }
export const SLOW_MS = 5_000

/** Decides the result of a request, given the failure to inject. */
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
