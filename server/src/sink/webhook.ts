// A receiver of webhooks, at any address.

import { type ChannelService, originOf, RETRY_AFTER, type SinkRequest } from './service.ts'

export type WebhookReceived = { url: string; path: string; id: string | null; body: string }

export type WebhookSinkSettings = {
  /** Checks the signature, if the secret is known. */
  verify?: ((body: string, headers: SinkRequest['headers']) => boolean) | undefined
  onReceived(received: WebhookReceived): void
}

export function webhookService({ verify = () => true, onReceived }: WebhookSinkSettings): ChannelService {
  return {
    channel: 'webhook',
    addressOf: ({ path }) => path,
    check: ({ body, headers }) =>
      verify(body.toString(), headers) ? undefined : { status: 401, body: 'signature not valid' },
    accept({ path, headers, body }) {
      onReceived({ url: `${originOf(headers)}${path}`, path, id: headers['webhook-id'] ?? null, body: body.toString() })
      return { status: 200, body: 'thanks' }
    },
    refusals: {
      unavailable: () => ({ status: 503 }),
      rate_limited: () => ({ status: 429, headers: RETRY_AFTER }),
      gone: () => ({ status: 410 }),
    },
  }
}
