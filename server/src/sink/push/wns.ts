// A stand-in for Windows Push Notification Services, with the statuses that Microsoft documents.

import { type ChannelService, originOf, RETRY_AFTER, type SinkAnswer, type SinkRequest } from '../service.ts'

export type WnsReceived = { channelUri: string; headers: SinkRequest['headers']; body: string }

export type WnsSinkSettings = {
  isValid(authorization: string | undefined): boolean
  onReceived(received: WnsReceived): void
}

const MOST_BYTES = 5000
const TYPES = ['wns/toast', 'wns/tile', 'wns/badge', 'wns/raw']

export const isForWns = ({ headers }: SinkRequest) => headers['x-wns-type'] !== undefined

export const wnsRefusal = (status: number, headers: Record<string, string> = {}): SinkAnswer => ({
  status,
  headers: { 'x-wns-error-description': 'refused', ...headers },
  body: '',
})

export const channelUriOf = ({ headers, path }: SinkRequest) => `${originOf(headers)}${path}`

export function wnsService({ isValid, onReceived }: WnsSinkSettings): ChannelService {
  let taken = 0
  return {
    channel: 'wns',
    addressOf: channelUriOf,
    check(request) {
      const { method, headers, body } = request
      if (method !== 'POST') return wnsRefusal(405)
      if (!isValid(headers.authorization)) return wnsRefusal(401)
      if (!areHeadersValid(headers)) return wnsRefusal(400)
      if (body.length > MOST_BYTES) return wnsRefusal(413)
      // Invalid XML is accepted and dropped, which WNS reports like this.
      if (headers['x-wns-type'] !== 'wns/raw' && !isToast(body.toString('utf8')))
        return { status: 200, headers: { 'x-wns-status': 'dropped' }, body: '' }
      return undefined
    },
    accept(request) {
      onReceived({ channelUri: channelUriOf(request), headers: request.headers, body: request.body.toString('utf8') })
      const headers = { 'x-wns-status': 'received', 'x-wns-msg-id': `WNS-${++taken}` }
      return { status: 200, headers, body: '' }
    },
    refusals: {
      unavailable: () => wnsRefusal(503, RETRY_AFTER),
      rate_limited: () => wnsRefusal(406, RETRY_AFTER),
      gone: () => wnsRefusal(410),
    },
  }
}

function areHeadersValid(headers: SinkRequest['headers']): boolean {
  const { 'x-wns-type': type = '', 'content-type': contentType, 'x-wns-tag': tag, 'x-wns-ttl': ttl } = headers
  return (
    TYPES.includes(type) &&
    contentType === (type === 'wns/raw' ? 'application/octet-stream' : 'text/xml') &&
    (tag === undefined || /^[A-Za-z0-9]{1,16}$/.test(tag)) &&
    (ttl === undefined || /^[1-9]\d{0,8}$/.test(ttl)) &&
    ['cache', 'no-cache', undefined].includes(headers['x-wns-cache-policy']) &&
    ['1', '2', '3', '4', undefined].includes(headers['x-wns-priority'])
  )
}

const TAG = /<(\/?)([a-z]+)((?:\s+[A-Za-z-]+="[^"<]*")*)\s*(\/?)>/y
const TEXT = /(?:[^<&]|&(?:amp|lt|gt|quot|apos|#\d+);)*/y

/** Whether the XML is a single element named toast, with every tag closed and every special character escaped. */
export function isToast(xml: string): boolean {
  const open: string[] = []
  for (let at = 0, tags = 0; ; tags++) {
    TAG.lastIndex = at
    const [tag, isEnd, name = '', , isEmpty] = TAG.exec(xml) ?? []
    if (tag === undefined || (tags === 0 && name !== 'toast')) return false
    if (/&(?!(amp|lt|gt|quot|apos|#\d+);)/.test(tag)) return false
    if (isEnd && open.pop() !== name) return false
    if (!isEnd && !isEmpty) open.push(name)
    at = TAG.lastIndex
    if (open.length === 0) return at === xml.length
    TEXT.lastIndex = at
    at += TEXT.exec(xml)?.[0].length ?? 0
  }
}
