// Times as RFC 3339 writes them, taken exactly: Date.parse() takes the 30th of February for the 2nd of March.

const DATE_TIME = /^(\d{4}-\d\d-(\d\d))[Tt ](\d\d:\d\d:\d\d)(?:\.(\d+))?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))$/

export type DateTime = {
  /** Finer fractions of a second than milliseconds are cut off. */
  at: Date
  /** Whether anything but zeros was cut off. */
  isCut: boolean
}

/** Undefined for what is no date-time, or names a day or second that there is not, leap seconds among them. */
export function readDateTime(text: string): DateTime | undefined {
  const [, date, day, time, fraction = '', sign, hours, minutes] = DATE_TIME.exec(text) ?? []
  if (date === undefined) return undefined
  const local = new Date(`${date}T${time}.${fraction.slice(0, 3).padEnd(3, '0')}Z`)
  // What is not NaN may still be the day after: the 30th of February, and 24:00.
  if (local.getUTCDate() !== Number(day)) return undefined
  const offsetMs = sign === undefined ? 0 : Number(`${sign}1`) * (Number(hours) * 60 + Number(minutes)) * 60_000
  return { at: new Date(local.getTime() - offsetMs), isCut: /[1-9]/.test(fraction.slice(3)) }
}
