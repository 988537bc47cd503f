// A push message in provider-independent form: fully rendered, in one language, for one kind of device. The payload
// files translate it into what the software on that device expects.

export type PushButton = { id: string; text: string; icon?: string | undefined; url?: string | undefined }

export type PushContent = {
  /** Receipts and clicks refer to this id. */
  messageId: string
  /**
   * The message must not be shown after this time. With a time in the past, it is delivered immediately or not at all.
   */
  expiresAt: Date
  /**
   * From 1 to 10: 10 may wake the device, 5 waits until it is awake. Each provider gets the nearest priority that it
   * supports.
   */
  priority: number
  title?: string | undefined
  subtitle?: string | undefined
  /** Without a body, nothing is shown: the app is woken with `data`. */
  body?: string | undefined
  /** The URL that a click opens. */
  url?: string | undefined
  /** Passed to the app or page unchanged. */
  data?: Readonly<Record<string, unknown>> | undefined
  /** Whether `data` is also added to the root of the payload, beside the keys that the SDKs read. */
  isDataAtRoot?: boolean | undefined
  buttons?: readonly PushButton[] | undefined
  /** Only the last of several messages with the same id is kept and shown. */
  collapseId?: string | undefined
  icon?: string | undefined
  /** A single-color icon for the status bar. */
  smallIcon?: string | undefined
  image?: string | undefined
  sound?: string | undefined
  /** Messages of the same group are shown together. */
  group?: string | undefined
  /** Asks the device to report that it received the message. */
  confirmsReceipt?: boolean | undefined
  templateId?: string | undefined
  ios?: IosContent | undefined
  android?: AndroidContent | undefined
  web?: WebContent | undefined
  huawei?: HuaweiContent | undefined
}

export type IosContent = {
  /**
   * Keys of `aps.alert` in Apple's spelling, such as `loc-key`. The title, subtitle and body of the message take
   * precedence.
   */
  alert?: Readonly<Record<string, unknown>> | undefined
  summaryArg?: string | undefined
  summaryArgCount?: number | undefined
  badge?: { set: number } | { increase: number } | undefined
  category?: string | undefined
  interruptionLevel?: 'passive' | 'active' | 'time-sensitive' | 'critical' | undefined
  relevanceScore?: number | undefined
  targetContentId?: string | undefined
  /** Wakes the app in addition to showing the message. */
  wakesApp?: boolean | undefined
  /** URLs, by name, of files that are shown with the message. Defaults to `image`. */
  attachments?: Readonly<Record<string, string>> | undefined
  isVoip?: boolean | undefined
}

export type AndroidContent = {
  /** A notification channel that the app itself has created. */
  channelId?: string | undefined
  /** Colors as ARGB in hex. */
  accentColor?: string | undefined
  ledColor?: string | undefined
  /** 1 is public, 0 private, -1 secret. */
  visibility?: number | undefined
  groupMessage?: string | undefined
  background?:
    | { image?: string | undefined; titleColor?: string | undefined; bodyColor?: string | undefined }
    | undefined
}

export type HuaweiContent = {
  /** The SDK shows the message, instead of the system. */
  isDataMessage?: boolean | undefined
  category?: string | undefined
  /** The message's name in Huawei's statistics. */
  biTag?: string | undefined
  /** `class`: the activity whose icon shows the badge. */
  badge?: { class?: string | undefined; set?: number | undefined; add?: number | undefined } | undefined
}

export type WebContent = {
  /** Messages with the same tag replace each other. Defaults to `collapseId`. */
  tag?: string | undefined
  vibrate?: string | undefined
}

/** Removes keys whose value is undefined. */
export const compact = (value: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(value).filter(([, it]) => it !== undefined))

/**
 * What `data` adds to the root of a payload. Keys that the software on the device reads are reserved even if this
 * message does not use them: `data.title` must not become the title of a message that has none.
 */
export function rootData(
  { data, isDataAtRoot }: PushContent,
  isReserved: (key: string) => boolean,
): [string, unknown][] {
  return isDataAtRoot && data ? Object.entries(data).filter(([key]) => !isReserved(key)) : []
}

/** If two are equally near, returns the higher one. */
export const nearestPriority = <Known extends number>(priority: number, known: readonly Known[]): Known =>
  known.reduce((best, it) => (Math.abs(it - priority) <= Math.abs(best - priority) ? it : best))

export const secondsLeft = (expiresAt: Date, now: Date) =>
  Math.max(0, Math.floor((expiresAt.getTime() - now.getTime()) / 1000))
