// Parses RFC 3339 times strictly: Date.parse() accepts the 30th of February as the 2nd of March.

const DATE_TIME = /^(\d{4}-\d\d-(\d\d))[Tt ](\d\d:\d\d:\d\d)(?:\.(\d+))?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))$/

export type DateTime = {
  /** Truncated to milliseconds. */
  at: Date
  /** Whether anything but zeros was truncated. */
  isCut: boolean
}

/**
 * Undefined for text that is not a date-time, or that names a day or second that does not exist, including leap
 * seconds.
 */
export function readDateTime(text: string): DateTime | undefined {
  const [, date, day, time, fraction = '', sign, hours, minutes] = DATE_TIME.exec(text) ?? []
  if (date === undefined) return undefined
  const local = new Date(`${date}T${time}.${fraction.slice(0, 3).padEnd(3, '0')}Z`)
  // A valid Date can still be on another day: for the 30th of February, and for 24:00.
  if (local.getUTCDate() !== Number(day)) return undefined
  const offsetMs = sign === undefined ? 0 : Number(`${sign}1`) * (Number(hours) * 60 + Number(minutes)) * 60_000
  return { at: new Date(local.getTime() - offsetMs), isCut: /[1-9]/.test(fraction.slice(3)) }
}
