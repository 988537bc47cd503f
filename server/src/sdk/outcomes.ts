/**
 * How many minutes, and for how many messages, an action of a person is attributed to a message. SDKs apply this
 * themselves.
 */
const attribution = { minutes_since_displayed: 60, limit: 5 }

export const OUTCOMES = {
  v2_enabled: true,
  direct: { enabled: true },
  indirect: {
    enabled: true,
    notification_attribution: attribution,
    in_app_message_attribution: attribution,
  },
  unattributed: { enabled: true },
}
