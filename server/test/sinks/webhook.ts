import { Webhook } from 'standardwebhooks'
import { webhookService } from '../../src/sink/webhook.ts'
import { type ScriptedProvider, startProvider } from './scripted.ts'

export const WEBHOOK_ORIGIN = 'https://hooks.example.com'

export type WebhookSink = ScriptedProvider & { accepted: { id: string | null; body: unknown }[] }

/** Checks signatures with the standard's own library. */
export async function startWebhookSink(secret: string): Promise<WebhookSink> {
  const receiver = new Webhook(secret)
  const accepted: WebhookSink['accepted'] = []
  const service = webhookService({
    verify(body, headers) {
      try {
        receiver.verify(body, headers as Record<string, string>)
        return true
      } catch {
        return false
      }
    },
    onReceived: ({ id, body }) => accepted.push({ id, body: JSON.parse(body) }),
  })
  const provider = await startProvider({ hosts: [new URL(WEBHOOK_ORIGIN).host] }, () => service)
  return { ...provider, accepted }
}
