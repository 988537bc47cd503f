// Work that is too long for one turn of the event loop is done in slices, and other work runs between them.

const waiting: (() => void)[] = []

function resumeOne() {
  waiting.shift()?.()
  if (waiting.length > 0) setImmediate(resumeOne)
}

/**
 * Resolves in a later turn of the event loop. Each turn resumes one waiter, however many there are, so that slices of
 * different requests do not add up to one long turn.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve)
    if (waiting.length === 1) setImmediate(resumeOne)
  })
}

/** Work that yields wherever it can be interrupted. */
export type Steps<Result> = Generator<void, Result>

export function runAtOnce<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
  }
}

export async function runInTurns<Result>(steps: Steps<Result>, pause = nextTurn): Promise<Result> {
  for (;;) {
    await pause()
    const step = steps.next()
    if (step.done) return step.value
  }
}

/** `Array.map` that lets other work run after every `size` items. Up to `size` items are mapped at once. */
export async function mapInTurns<Item, Result>(
  items: readonly Item[],
  size: number,
  map: (item: Item, index: number) => Result,
  pause = nextTurn,
): Promise<Result[]> {
  const results: Result[] = []
  for (let i = 0; i < items.length; i++) {
    if (i > 0 && i % size === 0) await pause()
    results.push(map(items[i] as Item, i))
  }
  return results
}
