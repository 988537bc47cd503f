// The pages of the server: home, documentation, guides.

import Type from 'typebox'
import { AppError } from '../../lib/errors.ts'
import { VERSION } from '../../lib/version.ts'
import { unlessKnown } from '../etag.ts'
import { type ApiDescription, INTERFACE_VERSION } from '../openapi.ts'
import { type Route, route } from '../route.ts'
import { FAVICON_SVG, readFaviconIco } from './favicon.ts'
import { renderGuide } from './guide-page.ts'
import { createGuides } from './guides.ts'
import { describeHome, HOME_POLICY, type HomeFacts, renderHome } from './home.ts'
import { pageHeaders } from './html.ts'
import { DOCS_POLICY } from './layout.ts'
import { prefersJson } from './prefers-json.ts'
import { operationsOf, renderReference } from './reference.ts'

export type PageRouteOptions = {
  describe: () => ApiDescription
  isReady: () => Promise<boolean>
  /** The address of the server, for examples. It never comes from the Host header of a request. */
  baseUrl: () => string
  hasDashboard: boolean
  /** The folder that contains docs/, if it is not in its usual place. */
  root?: URL
}

/** Stands in the cached page in place of the server's address, which is not known before it listens. */
const ORIGIN = 'http://origin.invalid'

const ICON_HEADERS = { 'cache-control': 'public, max-age=86400', 'x-content-type-options': 'nosniff' }

const Home = Type.Object({
  name: Type.String(),
  version: Type.String(),
  interface_version: Type.String(),
  status: Type.String({ description: '`ready` or `unavailable`.' }),
  links: Type.Record(Type.String(), Type.String()),
})

export function pageRoutes({ describe, isReady, baseUrl, hasDashboard, root }: PageRouteOptions): Route[] {
  const shared = {
    method: 'GET' as const,
    tag: 'Server',
    errors: 'apps' as const,
    limits: [],
    access: { kind: 'public' as const },
  }
  const guides = createGuides({ ...(root && { root }), findOperation: (mention) => pageOf(mention, describe()) })
  let reference: string | undefined
  // Read at start: a server without the file should not start.
  const ico = readFaviconIco()

  async function homeFacts(): Promise<HomeFacts> {
    const ready = await isReady()
    const hasGuides = guides.list().length > 0
    return { version: VERSION, interfaceVersion: INTERFACE_VERSION, isReady: ready, hasDashboard, hasGuides }
  }

  const showGuide = (call: { header(name: string): string | undefined }, slug: string) => {
    const page = guides.find(slug)
    if (!page) throw new AppError('not-found', { code: 'guide-0', title: 'There is no such guide; see /docs' })
    return unlessKnown(call, {
      status: 200,
      body: renderGuide(page, guides.list()),
      headers: pageHeaders(DOCS_POLICY.guide),
    })
  }

  return [
    route({
      ...shared,
      operation: 'getHome',
      path: '/',
      summary: 'What this server is',
      description:
        'A page for people: version, state, links and first steps. As JSON for who asks for `application/json`.',
      answers: { 200: Home },
      handle: async (call) => {
        const facts = await homeFacts()
        const headers = { vary: 'accept', 'cache-control': 'no-cache' }
        if (prefersJson(call.header('accept'))) return { status: 200, body: describeHome(facts), headers }
        const body = renderHome(facts, baseUrl())
        return { status: 200, body, headers: { ...pageHeaders(HOME_POLICY), ...headers } }
      },
    }),
    route({
      ...shared,
      operation: 'getDocs',
      path: '/docs',
      summary: 'This interface, for people',
      answers: { 200: Type.String() },
      produces: 'text/html',
      handle: (call) => {
        reference ??= renderReference({ api: describe(), guides: guides.list(), version: VERSION, origin: ORIGIN })
        const body = reference.replaceAll(ORIGIN, baseUrl())
        return unlessKnown(call, { status: 200, body, headers: pageHeaders(DOCS_POLICY.reference) })
      },
    }),
    route({
      ...shared,
      operation: 'getGuide',
      path: '/docs/:guide',
      summary: 'A guide',
      description: 'Those of the folder `docs`, by name: `/docs/try-it`.',
      params: Type.Object({ guide: Type.String() }),
      answers: { 200: Type.String() },
      produces: 'text/html',
      handle: (call) => showGuide(call, call.params.guide),
    }),
    route({
      ...shared,
      operation: 'getDecision',
      path: '/docs/decisions/:decision',
      summary: 'Why something is as it is',
      params: Type.Object({ decision: Type.String() }),
      answers: { 200: Type.String() },
      produces: 'text/html',
      handle: (call) => showGuide(call, `decisions/${call.params.decision}`),
    }),
    route({
      ...shared,
      operation: 'getFavicon',
      path: '/favicon.svg',
      summary: 'The icon of the server',
      answers: { 200: Type.String() },
      produces: 'image/svg+xml',
      handle: (call) =>
        unlessKnown(call, {
          status: 200,
          body: FAVICON_SVG,
          headers: { 'content-type': 'image/svg+xml', ...ICON_HEADERS },
        }),
    }),
    route({
      ...shared,
      operation: 'getFaviconIco',
      path: '/favicon.ico',
      summary: 'The same, for older browsers',
      answers: { 200: Type.String() },
      produces: 'image/x-icon',
      handle: () => ({ status: 200, body: ico, headers: { 'content-type': 'image/x-icon', ...ICON_HEADERS } }),
    }),
  ]
}

/** Matches `POST /notifications`, and `PATCH /apps/{app_id}/journeys/{id}` whatever the parameters are named there. */
function pageOf(mention: string, api: ApiDescription): string | undefined {
  const [, method, path] = /^(GET|POST|PUT|PATCH|DELETE) (\/[^\s?]+)/.exec(mention) ?? []
  if (method === undefined || path === undefined) return undefined
  const shape = (text: string) => text.replaceAll(/\{\w+\}/g, '{}')
  const found = operationsOf(api).find((one) => one.method === method.toLowerCase() && shape(one.path) === shape(path))
  return found && `/docs#${found.operation.operationId}`
}
