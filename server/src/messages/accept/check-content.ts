// Checks whether this server and this app may send the content of a message now.

import type { AppId } from '../../lib/ids.ts'
import { checkMayAttach } from '../../templates/check-content.ts'
import { usesLiquid } from '../../templates/prepare-content.ts'
import { refuseSuspended } from '../../templates/suspension.ts'
import type { Template } from '../../templates/template.ts'
import type { MessagesContext } from '../context.ts'
import type { MessageContent } from './read-content.ts'

export async function checkMessageContent(
  { allowsAttachments, findSuspension }: Pick<MessagesContext, 'allowsAttachments' | 'findSuspension'>,
  appId: AppId,
  { content, emailHtml }: MessageContent,
  template: Template | undefined,
): Promise<void> {
  checkMayAttach(content, allowsAttachments)
  if (!usesLiquid(content)) return
  await refuseSuspended(findSuspension, appId, { content, emailHtml, dynamicContent: template?.dynamicContent ?? null })
}
