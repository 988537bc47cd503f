let last = 5_550_000_000

export const aNumber = () => `+1${++last}`

/** What of it could be recognized in a reason. */
export const someNumbers = (to: string) => (to.length > 8 ? [to, to.slice(1)] : [])
