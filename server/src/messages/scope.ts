// What Liquid sees of a message and of the template that it was created from, wherever the message is rendered.

import { readDynamicContent } from '../templates/dynamic-content.ts'
import type { LiquidScopeParts } from '../templates/liquid-scope.ts'
import type { Message } from './message.ts'

export type MessageScope = Pick<LiquidScopeParts, 'template' | 'message'>

/** The same for all recipients. */
export const messageScope = ({
  id,
  name,
  templateId,
  options: { template, customData = {} },
}: Pick<Message, 'id' | 'name' | 'templateId' | 'options'>): MessageScope => ({
  template: {
    id: templateId,
    name: template?.name ?? null,
    dynamicContent: readDynamicContent(template?.dynamicContent),
  },
  message: { id, name, customData },
})
