/** By how much and for how long a message is given credit for what a person does after it; SDKs keep to it by themselves. */
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
