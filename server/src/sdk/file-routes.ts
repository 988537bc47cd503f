// The web SDK, and a demo page.

import Type from 'typebox'
import { unlessKnown } from '../http/etag.ts'
import { type Route, route } from '../http/route.ts'
import { addressList } from '../lib/networks.ts'
import type { SdkContext } from './context.ts'
import { readWebFile } from './files.ts'
import { DemoQuery } from './schema.ts'
import { findOnlyApp } from './store.ts'

/** Sites of any origin load the SDK, including cross-origin isolated ones. */
const FOR_SITES = {
  'cache-control': 'public, max-age=300',
  'cross-origin-resource-policy': 'cross-origin',
  'x-content-type-options': 'nosniff',
}

/** Allows only files of this server, requests to this server, and the images of messages. */
const DEMO_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; worker-src 'self'; img-src 'self' https:; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

const FOR_DEMO = {
  'cache-control': 'no-cache',
  'content-security-policy': DEMO_POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
}

const thisMachine = addressList(['127.0.0.0/8', '::1'])

type ServedFile = { operation: string; path: string; name: string; summary: string; headers: Record<string, string> }

const files: ServedFile[] = [
  {
    operation: 'getWebSdk',
    path: '/sdk/carillon.js',
    name: 'carillon.js',
    summary: 'The web SDK: the script for pages',
    headers: FOR_SITES,
  },
  {
    operation: 'getWebSdkTypes',
    path: '/sdk/carillon.d.ts',
    name: 'carillon.d.ts',
    summary: 'The web SDK: its types, for TypeScript',
    headers: FOR_SITES,
  },
  {
    operation: 'getWebSdkWorker',
    path: '/sdk/carillon-worker.js',
    name: 'carillon-worker.js',
    summary: 'The web SDK: the service worker',
    headers: FOR_SITES,
  },
  {
    operation: 'getDemoScript',
    path: '/demo/demo.js',
    name: 'demo/demo.js',
    summary: 'Script of the demo page',
    headers: FOR_DEMO,
  },
  {
    operation: 'getDemoStyle',
    path: '/demo/demo.css',
    name: 'demo/demo.css',
    summary: 'Style of the demo page',
    headers: FOR_DEMO,
  },
]

export function sdkFileRoutes({ db }: SdkContext): Route[] {
  const shared = { method: 'GET' as const, tag: 'SDKs', errors: 'apps' as const, limits: [] }
  const demo = readWebFile('demo/demo.html')

  return [
    ...files.map(({ operation, path, name, summary, headers }) => {
      const { text, contentType } = readWebFile(name)
      return route({
        ...shared,
        operation,
        path,
        summary,
        description: 'Answers 304 to a matching If-None-Match.',
        access: { kind: 'public' },
        answers: { 200: Type.String() },
        produces: contentType.split(';')[0] as string,
        handle: (call) =>
          unlessKnown(call, { status: 200, body: text, headers: { 'content-type': contentType, ...headers } }),
      })
    }),
    route({
      ...shared,
      operation: 'getDemo',
      path: '/demo',
      summary: 'A page to try web push',
      description:
        'For the app named by `app_id`. Without one, and asked from the machine of the server itself, it leads to the only app of the server.',
      access: { kind: 'public', isCounted: true },
      query: DemoQuery,
      answers: { 200: Type.String() },
      produces: 'text/html',
      async handle(call) {
        // Callers from other machines must not learn which apps exist.
        const only =
          call.query.app_id === undefined && thisMachine.includes(call.ip) ? await findOnlyApp(db) : undefined
        if (only !== undefined)
          return { status: 302, body: {}, headers: { location: `/demo?app_id=${only}`, 'cache-control': 'no-store' } }
        return unlessKnown(call, {
          status: 200,
          body: demo.text,
          headers: { 'content-type': demo.contentType, ...FOR_DEMO },
        })
      },
    }),
  ]
}
