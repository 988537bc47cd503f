/** Returns undefined if the text is not a JSON object. */
export function parseObject(text: Buffer | string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text.toString())
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
