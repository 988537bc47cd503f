// The payload for the official Android SDK: a data message, so that the SDK and not the system shows it. All values are
// strings.

import { compact, nearestPriority, type PushContent, rootData } from '../content.ts'

export type FcmPush = {
  data: Readonly<Record<string, string>>
  priority: 'HIGH' | 'NORMAL'
  expiresAt: Date
  collapseKey: string | undefined
}

/** The keys that the SDK reads, and those that FCM refuses or sets itself. */
const ROOT_KEYS = new Set(
  (
    'custom title alert pri licon sicon bicon sound o grp grp_msg chnl oth_chnl bgac ledc vis bg_img ' +
    'from notification message_type message_id collapse_key'
  ).split(' '),
)
const isReserved = (key: string) => key === '' || ROOT_KEYS.has(key) || /^(google|gcm)(\.|$)/.test(key)

const asText = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))

/** Called once for all recipients of the same content. */
export function writeFcmPush(content: PushContent): FcmPush {
  const { messageId, title, body, url, data, icon, smallIcon, image, sound, buttons, collapseId, group } = content
  const { channelId, accentColor, ledColor, visibility, groupMessage, background } = content.android ?? {}
  const fields = compact({
    ...Object.fromEntries(rootData(content, isReserved).map(([key, value]) => [key, asText(value)])),
    custom: JSON.stringify(compact({ i: messageId, a: data, u: url, ti: content.templateId })),
    title,
    alert: body,
    // The SDK itself distinguishes ten priorities.
    pri: String(content.priority),
    licon: icon,
    sicon: smallIcon,
    bicon: image,
    sound,
    o: buttons && JSON.stringify(buttons.map(({ id, text, icon }) => compact({ i: id, n: text, p: icon }))),
    grp: group,
    grp_msg: groupMessage,
    oth_chnl: channelId,
    bgac: accentColor,
    ledc: ledColor,
    vis: visibility?.toString(),
    bg_img:
      background &&
      JSON.stringify(compact({ img: background.image, tc: background.titleColor, bc: background.bodyColor })),
  }) as Record<string, string>
  return {
    data: fields,
    priority: nearestPriority(content.priority, [5, 10]) === 10 ? 'HIGH' : 'NORMAL',
    expiresAt: content.expiresAt,
    collapseKey: collapseId,
  }
}
