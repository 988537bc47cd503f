// What the three kinds of nodes have in common that send a message made of a template.

import { uuid } from '../document/json-schema.ts'
import { readReference } from '../document/read-fields.ts'
import type { BaseNode, TemplateChannel } from './node.ts'
import type { NodeKindDefinition } from './node-kind.ts'

export interface SendTemplateNode extends BaseNode {
  template_id: string
}

export const sendTemplate = (channel: TemplateChannel, summary: string): NodeKindDefinition<SendTemplateNode> => ({
  summary,
  fields: { template_id: uuid('send_push, send_email, send_sms: a template of that channel.') },
  required: ['template_id'],
  channel,
  read: ({ reading, path, fields }) => ({
    template_id: readReference(reading, `${path}.template_id`, fields.template_id, { kind: 'template', channel }),
  }),
  decide: ({ id, template_id: templateId }, { sendsHeldUntil }) =>
    sendsHeldUntil
      ? { kind: 'rests', untilAt: undefined, dueAt: sendsHeldUntil }
      : { kind: 'continues', effect: { kind: 'send', nodeId: id, channel, templateId } },
})
