// A client that sends anything as it is told, and waits for an answer only so long.

import { Agent, request } from 'node:http'

export type FuzzRequest = { method: string; path: string; headers: Record<string, string>; body?: Buffer | undefined }
/** Status 0: there was no answer. */
export type FuzzAnswer = { status: number; type: string; text: string }

/** Answers take up to four seconds; machines may be slow. */
const ANSWER_MS = 240_000
const agent = new Agent({ keepAlive: true, maxSockets: 12 })

export const closeClient = () => agent.destroy()

export function ask(url: string, { method, path, headers, body }: FuzzRequest): Promise<FuzzAnswer> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve) => {
    const noAnswer = (text: string) => resolve({ status: 0, type: '', text })
    const sent = request(
      {
        hostname,
        port,
        method,
        path,
        agent,
        headers: { ...headers, ...(body && { 'content-length': String(body.length) }) },
        signal: AbortSignal.timeout(ANSWER_MS),
      },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk) => chunks.push(chunk))
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            type: response.headers['content-type'] ?? '',
            text: Buffer.concat(chunks).toString(),
          }),
        )
        response.on('error', (error) => noAnswer(String(error)))
      },
    )
    sent.on('error', (error) => noAnswer(String(error)))
    sent.end(body)
  })
}
