import type { NodeKindDefinition } from './node-kind.ts'
import { type SendTemplateNode, sendTemplate } from './send-template.ts'

export interface SendSmsNode extends SendTemplateNode {
  kind: 'send_sms'
}

export const sendSms: NodeKindDefinition<SendSmsNode> = sendTemplate('sms', 'sends an SMS')
