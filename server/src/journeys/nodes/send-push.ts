import type { NodeKindDefinition } from './node-kind.ts'
import { type SendTemplateNode, sendTemplate } from './send-template.ts'

export interface SendPushNode extends SendTemplateNode {
  kind: 'send_push'
}

export const sendPush: NodeKindDefinition<SendPushNode> = sendTemplate('push', 'sends a push message')
