/** Browsers take their time, and tell nobody when they are done. */
export async function until<Value>(look: () => Promise<Value | undefined>): Promise<Value> {
  const end = performance.now() + 20_000
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    if (performance.now() > end) throw new Error('it did not happen')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
