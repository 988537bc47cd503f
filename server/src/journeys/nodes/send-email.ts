import type { NodeKindDefinition } from './node-kind.ts'
import { type SendTemplateNode, sendTemplate } from './send-template.ts'

export interface SendEmailNode extends SendTemplateNode {
  kind: 'send_email'
}

export const sendEmail: NodeKindDefinition<SendEmailNode> = sendTemplate('email', 'sends an email')
