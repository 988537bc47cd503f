// Metrics for Prometheus. Requests are counted by hand, in one small object per operation and status: prom-client's
// label hashing would cost as much per request as validating it.

import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Gauge, type Metric, Registry } from 'prom-client'

const BUCKETS_MS = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000]

type Series = { count: number; sumMs: number; buckets: number[] }
/** The figures of one operation, by status. */
export type OperationStats = Map<number, Series>

export type Reading = number | Record<string, number>

export type Metrics = {
  operation(name: string): OperationStats
  /** Registers a figure that is read on each scrape: one number, or several under the label `kind`. */
  gauge(name: string, help: string, read: () => Reading): void
  text(): Promise<string>
  readonly contentType: string
  close(): void
}

export function record(stats: OperationStats, status: number, ms: number): void {
  let series = stats.get(status)
  if (!series) {
    series = { count: 0, sumMs: 0, buckets: BUCKETS_MS.map(() => 0) }
    stats.set(status, series)
  }
  series.count++
  series.sumMs += ms
  for (let i = 0; i < BUCKETS_MS.length; i++) {
    if (ms <= (BUCKETS_MS[i] as number)) {
      series.buckets[i] = (series.buckets[i] as number) + 1
      break
    }
  }
}

export function createMetrics(): Metrics {
  const registry = new Registry()
  const operations = new Map<string, OperationStats>()
  registry.registerMetric(requestHistogram(operations))

  const delay = monitorEventLoopDelay({ resolution: 20 })
  delay.enable()

  const gauge: Metrics['gauge'] = (name, help, read) => {
    // A label must be declared before the first reading, but only the reading shows whether there is one.
    const labelNames = ['kind'] as const
    new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      collect() {
        const reading = read()
        this.reset()
        if (typeof reading === 'number') this.set(reading)
        else for (const [kind, value] of Object.entries(reading)) this.set({ kind }, value)
      },
    })
  }
  gauge('carillon_event_loop_delay_seconds', 'Delay of the event loop since the last reading.', () => loopDelay(delay))
  gauge('carillon_memory_bytes', 'Memory of the process.', () => {
    const { rss, heapUsed, heapTotal, external } = process.memoryUsage()
    return { rss, heap_used: heapUsed, heap_total: heapTotal, external }
  })
  gauge('carillon_uptime_seconds', 'Seconds since the process started.', () => process.uptime())

  return {
    operation(name) {
      let stats = operations.get(name)
      if (!stats) {
        stats = new Map()
        operations.set(name, stats)
      }
      return stats
    },
    gauge,
    text: () => registry.metrics(),
    contentType: registry.contentType,
    close: () => delay.disable(),
  }
}

function loopDelay(delay: ReturnType<typeof monitorEventLoopDelay>): Record<string, number> {
  const seconds = (nanoseconds: number) => (Number.isFinite(nanoseconds) ? nanoseconds / 1e9 : 0)
  const reading = { mean: seconds(delay.mean), p99: seconds(delay.percentile(99)), max: seconds(delay.max) }
  delay.reset()
  return reading
}

type HistogramValue = { labels: Record<string, string | number>; value: number; metricName: string }

/** What the registry needs from a histogram: its values at the time of a scrape. */
function requestHistogram(operations: Map<string, OperationStats>): Metric {
  const name = 'carillon_http_request_duration_seconds'
  const values = () => {
    const list: HistogramValue[] = []
    for (const [operation, stats] of operations)
      for (const [status, { count, sumMs, buckets }] of stats) {
        const labels = { operation, status }
        let sum = 0
        buckets.forEach((value, i) => {
          sum += value
          list.push({
            labels: { le: (BUCKETS_MS[i] as number) / 1000, ...labels },
            value: sum,
            metricName: `${name}_bucket`,
          })
        })
        list.push({ labels: { le: '+Inf', ...labels }, value: count, metricName: `${name}_bucket` })
        list.push({ labels, value: sumMs / 1000, metricName: `${name}_sum` })
        list.push({ labels, value: count, metricName: `${name}_count` })
      }
    return list
  }
  return {
    name,
    get: async () => ({
      name,
      help: 'Answered requests by operation and status, and the time until the answer was handed to the socket.',
      type: 'histogram',
      values: values(),
      aggregator: 'sum',
    }),
    reset: () => operations.clear(),
  } as unknown as Metric
}
