import { uuid } from '../document/json-schema.ts'
import { readReference } from '../document/read-fields.ts'
import type { BaseNode } from './node.ts'
import type { NodeKindDefinition } from './node-kind.ts'

export interface SendWebhookNode extends BaseNode {
  kind: 'send_webhook'
  webhook_id: string
}

export const sendWebhook: NodeKindDefinition<SendWebhookNode> = {
  summary: 'sends a signed request to a journey webhook',
  fields: { webhook_id: uuid('send_webhook: a journey webhook.') },
  required: ['webhook_id'],
  channel: 'webhook',
  read: ({ reading, path, fields }) => ({
    webhook_id: readReference(reading, `${path}.webhook_id`, fields.webhook_id, { kind: 'webhook' }),
  }),
  decide: ({ id: nodeId, webhook_id: webhookId }) => ({
    kind: 'continues',
    effect: { kind: 'call', nodeId, webhookId },
  }),
}
