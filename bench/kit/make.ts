import { type Carillon, headersOf } from './processes.ts'

/** What a request answers that has to succeed. */
export async function make(
  carillon: Carillon,
  path: string,
  body: object,
  method: 'POST' | 'PATCH' = 'POST',
  // biome-ignore lint/suspicious/noExplicitAny: an answer is read as the JSON it is
): Promise<any> {
  const answer = await fetch(`${carillon.url}${path}`, {
    method,
    headers: headersOf(carillon),
    body: JSON.stringify(body),
  })
  const made: unknown = await answer.json()
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${JSON.stringify(made)}`)
  return made
}
