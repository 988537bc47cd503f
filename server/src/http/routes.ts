// The server's own routes: health, readiness, metrics, and the description of the API.

import Type from 'typebox'
import { unavailable } from '../lib/errors.ts'
import { JSON_TYPE } from './answer.ts'
import type { Metrics } from './metrics.ts'
import { describeApi } from './openapi.ts'
import { pageRoutes } from './pages/routes.ts'
import { type Route, route } from './route.ts'

const DEFAULT_BASE_URL = 'http://localhost:3000'

export type KitRouteOptions = {
  /** The routes of the domains, which are described together with the server's own. */
  routes: readonly Route[]
  metrics: Pick<Metrics, 'text' | 'contentType'>
  isReady: () => Promise<boolean>
  /** The address of the server, without a slash at its end, for the examples on its pages. */
  baseUrl?: (() => string) | undefined
}

const Status = Type.Object({ status: Type.String() })
const text = (status: number, body: string, contentType: string) => ({
  status,
  body,
  headers: { 'content-type': contentType },
})

export function kitRoutes({ routes, metrics, isReady, baseUrl = () => DEFAULT_BASE_URL }: KitRouteOptions): Route[] {
  const shared = { tag: 'Server', errors: 'apps' as const, limits: [] }
  // Built on first use; it never changes while the process lives.
  const describe = memoize(() => describeApi([...routes, ...own]))
  const json = memoize(() => JSON.stringify(describe()))

  const own: Route[] = [
    route({
      ...shared,
      operation: 'getHealth',
      method: 'GET',
      path: '/health',
      summary: 'Is the process alive?',
      access: { kind: 'public' },
      answers: { 200: Status },
      handle: () => ({ status: 200, body: { status: 'ok' } }),
    }),
    route({
      ...shared,
      operation: 'getReadiness',
      method: 'GET',
      path: '/ready',
      summary: 'Can it answer requests now?',
      description: 'Answers 503 while the database cannot be reached and while the server is stopping.',
      access: { kind: 'public' },
      answers: { 200: Status },
      handle: async () => {
        if (!(await isReady())) throw unavailable()
        return { status: 200, body: { status: 'ready' } }
      },
    }),
    route({
      ...shared,
      operation: 'getMetrics',
      method: 'GET',
      path: '/metrics',
      summary: 'Figures for a scraper',
      description: 'In the text format of Prometheus. Takes an organization key or the METRICS_TOKEN of the settings.',
      access: { kind: 'metrics' },
      answers: { 200: Type.String() },
      produces: 'text/plain',
      handle: async () => text(200, await metrics.text(), metrics.contentType),
    }),
    route({
      ...shared,
      operation: 'getOpenApi',
      method: 'GET',
      path: '/openapi.json',
      summary: 'This interface, for machines',
      access: { kind: 'public' },
      answers: { 200: Type.Object({}) },
      handle: () => text(200, json(), JSON_TYPE),
    }),
    ...pageRoutes({ describe, isReady, baseUrl, hasDashboard: routes.some(({ path }) => path === '/dashboard') }),
  ]
  return own
}

function memoize<Value>(make: () => Value): () => Value {
  let made: { value: Value } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}
