// The delivery settings of an app.

/** The channels that quiet hours and caps apply to. Webhooks and in-app messages disturb nobody. */
export const DELIVERY_CHANNELS = ['push', 'email', 'sms'] as const
export type DeliveryChannel = (typeof DELIVERY_CHANNELS)[number]

/** In the order of JavaScript's getUTCDay(). */
export const DAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'] as const
export type Day = (typeof DAYS)[number]

export type QuietHours = {
  /** "HH:MM" in the time zone of the user. An end at or before the start is on the next day. */
  start: string
  end: string
  /** The days on which quiet hours begin. */
  days: Day[]
  channels: DeliveryChannel[]
  /** For users whose time zone is not known. */
  fallbackTimeZone: string
}

export const UNITS = { minutes: 60_000, hours: 3_600_000, days: 86_400_000 } as const

/** At most `count` messages of the channel to one user within any window of `window` units. */
export type FrequencyCap = { channel: DeliveryChannel; count: number; window: number; unit: keyof typeof UNITS }

export const windowMsOf = ({ window, unit }: Pick<FrequencyCap, 'window' | 'unit'>) => window * UNITS[unit]

export type DeliverySettings = {
  quietHours: QuietHours | null
  /** At most one for each channel. */
  frequencyCaps: FrequencyCap[]
  throttlePerMinute: number | null
  /** Null means as long as the server keeps messages. */
  retentionDays: number | null
  limitFactor: number
}

export const DEFAULT_SETTINGS: DeliverySettings = {
  quietHours: null,
  frequencyCaps: [],
  throttlePerMinute: null,
  retentionDays: null,
  limitFactor: 10,
}
