// SMS as a channel of the engine.

import type { MessageChannel } from '../engine/channel.ts'
import { OPTED_OUT } from '../reasons.ts'

export const smsChannel: MessageChannel = {
  prepare: async (_ctx, _appId, due) => due.map((delivery) => ({ delivery, details: {} })),

  compose({ due, message: { id: messageId, content } }, texts, { share }) {
    const mediaUrls = content.sms_media_urls ?? []
    return {
      kind: 'sms',
      platform: due.platform,
      token: due.token ?? '',
      content: share('', () => ({
        messageId,
        text: texts.contents ?? '',
        from: content.sms_from ?? undefined,
        mediaUrls: mediaUrls.map((_, i) => texts[`sms_media_urls[${i}]`] ?? ''),
      })),
    }
  },

  goneNotificationTypes: { [OPTED_OUT]: -2 },
}
