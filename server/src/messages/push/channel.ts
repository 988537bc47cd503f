// Push as a channel of the engine, live activities included.

import { resolveActivityTokens, tokenNameOf } from '../activities/resolve-tokens.ts'
import { deleteTokens } from '../activities/store.ts'
import type { MessageChannel, ReadyDelivery, RenderedTexts } from '../engine/channel.ts'
import { providerExpiryOf } from '../lifetime.ts'
import type { LiveActivity } from '../message.ts'
import type { ActivityContent } from '../outgoing-message.ts'
import { iosSound, pushContent } from './content.ts'
import { OTHER_SENDER, quarantineGone } from './quarantine.ts'

export const pushChannel: MessageChannel = {
  async prepare({ db }, appId, due, messages) {
    const addressed = await resolveActivityTokens(db, appId, due, messages)
    return addressed.map((delivery) => ({ delivery, details: {} }))
  },

  compose(delivery, texts, { share }) {
    const { due, message } = delivery
    const { activity } = message.options
    const address = { platform: due.platform, token: due.token ?? '' }
    const expiresAt = expiryOf(delivery)
    const variant = `${due.platform} ${due.expiresAt.getTime()}`
    if (activity) {
      const content = share(variant, () => activityContent(delivery, activity, texts, expiresAt))
      return { ...address, kind: 'activity', content }
    }
    const content = share(variant, () => pushContent(message, texts, due.platform, expiresAt))
    return { ...address, kind: 'push', content, webAuth: due.webAuth, webP256: due.webP256 }
  },

  reviewOutcomes: quarantineGone,

  goneNotificationTypes: { BadDeviceToken: -14, DeviceTokenNotForTopic: -16, [OTHER_SENDER]: -6 },

  /** The device is still there; only this activity is gone. */
  deleteGone(db, appId, { due: { subscriptionId, token }, message: { options } }) {
    if (!options.activity || token === null) return undefined
    return deleteTokens(db, appId, [{ ...tokenNameOf(options.activity), subscriptionId, token }])
  },
}

const expiryOf = ({ due, message }: ReadyDelivery): Date => providerExpiryOf(due.expiresAt, message.options)

function activityContent(
  { message: { id: messageId, options, content } }: ReadyDelivery,
  activity: LiveActivity,
  { headings: title, contents: body }: RenderedTexts,
  expiresAt: Date,
): ActivityContent {
  const isSilent = title === undefined && body === undefined
  const alert = isSilent ? undefined : { title, body, sound: iosSound(content) }
  return { messageId, activity, expiresAt, priority: options.priority, alert }
}
