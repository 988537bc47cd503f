// Reads lines from standard input of any size, with one chunk in memory at a time.

const MAX_LINE = 1_000_000

/**
 * Truncates lines that are too long, so that input without line breaks does not fill the memory. A truncated line of
 * JSON does not parse, so it is refused.
 */
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
