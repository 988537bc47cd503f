// The load tool: one process, one thread, the same for both sides. It is told what to send as messages of its parent.

import autocannon from 'autocannon'

export type Load = {
  url: string
  connections: number
  seconds: number
  method: 'GET' | 'POST' | 'PATCH'
  headers: Record<string, string>
  /** `{n}` in path and body becomes a number that is new for each request: from `from` on, or below `below` at random. */
  path: string
  body?: string
  from?: number
  below?: number
}

export type LoadResult = { perSecond: number; p50Ms: number; p99Ms: number; sent: number; failed: number }

async function run(load: Load): Promise<LoadResult> {
  let n = load.from ?? 0
  const next = () => (load.below === undefined ? n++ : Math.floor(Math.random() * load.below))
  const result = await autocannon({
    url: load.url,
    connections: load.connections,
    duration: load.seconds,
    requests: [
      {
        method: load.method,
        path: load.path,
        headers: load.headers,
        setupRequest(request) {
          const number = String(next())
          return {
            ...request,
            path: load.path.replace('{n}', number),
            ...(load.body !== undefined && { body: load.body.replaceAll('{n}', number) }),
          }
        },
      },
    ],
  })
  return {
    perSecond: result['2xx'] / result.duration,
    p50Ms: result.latency.p50,
    p99Ms: result.latency.p99,
    sent: n,
    failed: result.non2xx + result.errors,
  }
}

process.on('message', (load: Load) => {
  run(load).then(
    (result) => process.send?.({ result }),
    (error) => process.send?.({ error: String(error) }),
  )
})
