// Scripts of any site may call routes that need no key. No cookie is ever accepted, so another site's page gains
// nothing that it could not send by itself.

/** Request headers that the web and mobile SDKs send. */
const ALLOWED_HEADERS = [
  'Accept',
  'Authorization',
  'Content-Type',
  'If-None-Match',
  'OneSignal-Install-Id',
  'OneSignal-RYW-Token',
  'Onesignal-Retry-Count',
  'OneSignal-Session-Duration',
  'OneSignal-Subscription-Id',
  'SDK-Version',
  'SDK-Wrapper',
  'X-Request-Id',
].join(', ')

/** Response headers that SDKs read. */
const EXPOSED_HEADERS = 'ETag, OneSignal-Retry-Limit, Retry-After, X-Request-Id'

export const corsHeaders = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': EXPOSED_HEADERS,
}

export const preflightHeaders = (methods: readonly string[]) => ({
  'access-control-allow-origin': '*',
  'access-control-allow-methods': methods.join(', '),
  'access-control-allow-headers': ALLOWED_HEADERS,
  'access-control-max-age': '86400',
})
