// The kit's own routes: is it alive, is it ready, how is it doing, and what does it offer.

import Type from 'typebox'
import { unavailable } from '../lib/errors.ts'
import { JSON_TYPE } from './answer.ts'
import { DOCS_POLICY, renderDocs } from './docs-page.ts'
import type { Metrics } from './metrics.ts'
import { describeApi } from './openapi.ts'
import { type Route, route } from './route.ts'

export type KitRouteOptions = {
  /** The routes of the domains, to be described together with the kit's own. */
  routes: readonly Route[]
  metrics: Pick<Metrics, 'text' | 'contentType'>
  isReady: () => Promise<boolean>
}

const Status = Type.Object({ status: Type.String() })
const text = (status: number, body: string, contentType: string, headers: Record<string, string> = {}) => ({
  status,
  body,
  headers: { 'content-type': contentType, ...headers },
})

export function kitRoutes({ routes, metrics, isReady }: KitRouteOptions): Route[] {
  const shared = { tag: 'Server', errors: 'apps' as const, limits: [] }
  let description: { json: string; html: string } | undefined
  // Made when first asked for: it never changes while the process lives.
  const described = () => {
    if (!description) {
      const api = describeApi([...routes, ...own])
      description = { json: JSON.stringify(api), html: renderDocs(api) }
    }
    return description
  }

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
      handle: () => text(200, described().json, JSON_TYPE),
    }),
    route({
      ...shared,
      operation: 'getDocs',
      method: 'GET',
      path: '/docs',
      summary: 'This interface, for people',
      access: { kind: 'public' },
      answers: { 200: Type.String() },
      produces: 'text/html',
      handle: () =>
        text(200, described().html, 'text/html; charset=utf-8', {
          'content-security-policy': DOCS_POLICY,
          'x-content-type-options': 'nosniff',
          'referrer-policy': 'no-referrer',
        }),
    }),
  ]
  return own
}
