// Lines of standard input, however many there are: one piece of it is in memory at a time.

const MAX_LINE = 1_000_000

/** A line that is too long comes cut off: what it is taken for, it is not. */
export async function* readLines(input: AsyncIterable<Uint8Array | string>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const piece of input) {
    const lines = (rest + (typeof piece === 'string' ? piece : decoder.decode(piece, { stream: true }))).split('\n')
    rest = (lines.pop() as string).slice(0, MAX_LINE)
    yield* lines
  }
  rest += decoder.decode()
  if (rest !== '') yield rest
}
