// The load tool: one process, one thread, the same for both sides. Each connection sends its next request when the answer
// to the last one has come. Written here because it must be cheap: it shares two cores with what it measures, and takes
// less than half of one where the bare server takes a whole one.

import { connect, type Socket } from 'node:net'

export type Load = {
  url: string
  connections: number
  seconds: number
  method: 'GET' | 'POST' | 'PATCH'
  headers: Record<string, string>
  /**
   * `{n}` in path and body becomes a number that is new for each request, from `from` on; or one below `below` at random, or one
   * of `among`.
   */
  path: string
  body?: string
  from?: number
  below?: number
  among?: string[]
}

export type LoadResult = { perSecond: number; p50Ms: number; p99Ms: number; sent: number; failed: number }

const STATUS_AT = 'HTTP/1.1 '.length

async function run(load: Load): Promise<LoadResult> {
  const { hostname, port } = new URL(load.url)
  const write = requestWriter(load, `${hostname}:${port}`)
  const latencies: number[] = []
  let failed = 0
  let isOver = false

  const client = () =>
    new Promise<void>((resolve, reject) => {
      const socket: Socket = connect({ host: hostname, port: Number(port), noDelay: true })
      let beganMs = 0
      let text = ''
      const next = () => {
        if (isOver) {
          socket.destroy()
          resolve()
          return
        }
        beganMs = performance.now()
        socket.write(write())
      }
      socket.setEncoding('latin1')
      socket.on('connect', next)
      socket.on('error', reject)
      socket.on('data', (chunk: string) => {
        text = text === '' ? chunk : text + chunk
        if (!isWhole(text)) return
        latencies.push(performance.now() - beganMs)
        if (text[STATUS_AT] !== '2') failed++
        text = ''
        next()
      })
    })

  const startedMs = performance.now()
  const timer = setTimeout(() => {
    isOver = true
  }, load.seconds * 1000)
  await Promise.all(Array.from({ length: load.connections }, client))
  clearTimeout(timer)
  const seconds = (performance.now() - startedMs) / 1000
  latencies.sort((a, b) => a - b)
  const at = (share: number) => Math.round((latencies[Math.floor(latencies.length * share)] ?? 0) * 10) / 10
  return {
    perSecond: (latencies.length - failed) / seconds,
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    sent: (load.from ?? 0) + latencies.length,
    failed,
  }
}

/** Both servers answer with a Content-Length; there is one answer on the wire at a time. */
function isWhole(text: string): boolean {
  const end = text.indexOf('\r\n\r\n')
  if (end === -1) return false
  const at = text.toLowerCase().indexOf('content-length: ')
  return text.length >= end + 4 + Number.parseInt(text.slice(at + 16, at + 26), 10)
}

const random = (below: number) => Math.floor(Math.random() * below)

function requestWriter({ method, path, headers, body, from = 0, below, among }: Load, host: string): () => string {
  const lines = Object.entries({ host, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  const head = ` HTTP/1.1\r\n${lines.join('')}`
  const [before = '', after = ''] = path.split('{n}')
  const bodyParts = body?.split('{n}')
  let n = from
  return () => {
    const number = among ? among[random(among.length)] : String(below === undefined ? n++ : random(below))
    const start = path.includes('{n}') ? `${method} ${before}${number}${after}${head}` : `${method} ${path}${head}`
    if (!bodyParts) return `${start}\r\n`
    const content = bodyParts.join(number)
    return `${start}content-length: ${content.length}\r\n\r\n${content}`
  }
}

process.on('message', (load: Load) => {
  run(load).then(
    (result) => process.send?.({ result }),
    (error) => process.send?.({ error: String(error) }),
  )
})
