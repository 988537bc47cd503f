// A push message in words that no provider uses: finished, in one language, for one kind of device. The payload files turn
// it into what the software on that device expects.

export type PushButton = { id: string; text: string; icon?: string | undefined; url?: string | undefined }

export type PushContent = {
  /** By which receipts and clicks come back. */
  messageId: string
  /** After this moment nobody shall see it. What is in the past asks for now or never. */
  expiresAt: Date
  /** From 1 to 10: 10 may wake the device, 5 waits until it is awake. Each provider gets the nearest that it knows. */
  priority: number
  title?: string | undefined
  subtitle?: string | undefined
  /** Without it nothing is shown: the app is woken with `data`. */
  body?: string | undefined
  /** Opened by a click. */
  url?: string | undefined
  /** Handed to the app or page as it is. */
  data?: Readonly<Record<string, unknown>> | undefined
  /** Whether `data` also stands at the root of the payload, beside what the SDKs read. */
  isDataAtRoot?: boolean | undefined
  buttons?: readonly PushButton[] | undefined
  /** Of several messages with the same one only the last is kept and shown. */
  collapseId?: string | undefined
  icon?: string | undefined
  /** One colour, for the status bar. */
  smallIcon?: string | undefined
  image?: string | undefined
  sound?: string | undefined
  /** Messages shown together. */
  group?: string | undefined
  /** Asks the device to tell when it has got the message. */
  confirmsReceipt?: boolean | undefined
  templateId?: string | undefined
  ios?: IosContent | undefined
  android?: AndroidContent | undefined
  web?: WebContent | undefined
  huawei?: HuaweiContent | undefined
}

export type IosContent = {
  /** Keys of `aps.alert` in Apple's words, such as `loc-key`; title, subtitle and body of the message go before them. */
  alert?: Readonly<Record<string, unknown>> | undefined
  summaryArg?: string | undefined
  summaryArgCount?: number | undefined
  badge?: { set: number } | { increase: number } | undefined
  category?: string | undefined
  interruptionLevel?: 'passive' | 'active' | 'time-sensitive' | 'critical' | undefined
  relevanceScore?: number | undefined
  targetContentId?: string | undefined
  /** Wakes the app beside what is shown. */
  wakesApp?: boolean | undefined
  /** By name: the address of what is shown with the message. `image` unless given. */
  attachments?: Readonly<Record<string, string>> | undefined
  isVoip?: boolean | undefined
}

export type AndroidContent = {
  /** A channel that the app itself has made. */
  channelId?: string | undefined
  /** Colours as ARGB in hex. */
  accentColor?: string | undefined
  ledColor?: string | undefined
  /** 1 public, 0 private, -1 secret. */
  visibility?: number | undefined
  groupMessage?: string | undefined
  background?:
    | { image?: string | undefined; titleColor?: string | undefined; bodyColor?: string | undefined }
    | undefined
}

export type HuaweiContent = {
  /** For the SDK to show, instead of the system. */
  isDataMessage?: boolean | undefined
  category?: string | undefined
  /** What Huawei's statistics know it by. */
  biTag?: string | undefined
  /** `class`: the activity whose icon has the badge. */
  badge?: { class?: string | undefined; set?: number | undefined; add?: number | undefined } | undefined
}

export type WebContent = {
  /** Messages with the same tag replace each other; `collapseId` unless given. */
  tag?: string | undefined
  vibrate?: string | undefined
}

/** JSON without what is not given. */
export const compact = (value: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(value).filter(([, it]) => it !== undefined))

/**
 * What `data` adds to the root of a payload. Keys that the software on the device reads are reserved even where this message
 * leaves them out: `data.title` must not become the title of a message that has none.
 */
export function rootData(
  { data, isDataAtRoot }: PushContent,
  isReserved: (key: string) => boolean,
): [string, unknown][] {
  return isDataAtRoot && data ? Object.entries(data).filter(([key]) => !isReserved(key)) : []
}

/** Of two that are equally near, the higher. */
export const nearestPriority = <Known extends number>(priority: number, known: readonly Known[]): Known =>
  known.reduce((best, it) => (Math.abs(it - priority) <= Math.abs(best - priority) ? it : best))

export const secondsLeft = (expiresAt: Date, now: Date) =>
  Math.max(0, Math.floor((expiresAt.getTime() - now.getTime()) / 1000))
