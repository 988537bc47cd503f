/** Runs what concerns one thing one after the other, and what concerns different things at the same time. */
export type KeyedMutex = <Result>(of: string, run: () => Promise<Result>) => Promise<Result>

export function createKeyedMutex(): KeyedMutex {
  const last = new Map<string, Promise<unknown>>()
  return (of, run) => {
    const result = (last.get(of) ?? Promise.resolve()).then(run)
    // Whoever comes next waits for the end of it, not for its success.
    const ended: Promise<unknown> = result
      .catch(() => {})
      .finally(() => {
        if (last.get(of) === ended) last.delete(of)
      })
    last.set(of, ended)
    return result
  }
}
