/** Runs functions with the same key one after the other, and functions with different keys concurrently. */
export type KeyedMutex = <Result>(of: string, run: () => Promise<Result>) => Promise<Result>

export function createKeyedMutex(): KeyedMutex {
  const last = new Map<string, Promise<unknown>>()
  return (of, run) => {
    const result = (last.get(of) ?? Promise.resolve()).then(run)
    // The next function waits for this one to end, whether or not it succeeds.
    const ended: Promise<unknown> = result
      .catch(() => {})
      .finally(() => {
        if (last.get(of) === ended) last.delete(of)
      })
    last.set(of, ended)
    return result
  }
}
