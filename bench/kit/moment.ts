/** The same clock in all processes of the machine, finer than a millisecond. */
export const moment = () => performance.timeOrigin + performance.now()
