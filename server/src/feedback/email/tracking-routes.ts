// The requests that mail programs and browsers make because of an email. They need no key, because the reference in the
// address is signed.

import Type from 'typebox'
import type { Route } from '../../http/route.ts'
import { route } from '../../http/route.ts'
import type { FeedbackContext } from '../context.ts'
import { badLinkPage, unknownPage } from './pages.ts'
import { readLink, recordClick, recordOpen } from './track.ts'
import { viewEmail } from './view.ts'

/** A single transparent pixel. */
const PIXEL = Buffer.from('R0lGODlhAQABAIAAAAAAAAAAACH5BAEAAAAALAAAAAABAAEAAAICRAEAOw==', 'base64')

const PIXEL_HEADERS = {
  'content-type': 'image/gif',
  'cache-control': 'no-store, no-cache, must-revalidate, private',
  'cross-origin-resource-policy': 'cross-origin',
  'x-content-type-options': 'nosniff',
}

const common = { method: 'GET' as const, tag: 'Email', errors: 'messages' as const, limits: [] }
const reference = Type.String({ description: 'Which email to whom, signed for this purpose.' })

export const trackingRoutes = (ctx: FeedbackContext): Route[] => [
  route({
    ...common,
    operation: 'openEmail',
    path: '/e/o/:file',
    summary: 'The tracking pixel that records opens of an email',
    description:
      'The same whatever it is asked for. Counted where the reference is rightly signed; HEAD counts nothing.',
    access: { kind: 'public' },
    params: Type.Object({ file: Type.String({ description: 'The signed reference, and `.gif`.' }) }),
    answers: { 200: Type.String({ format: 'binary' }) },
    produces: 'image/gif',
    async handle(call) {
      const reference = call.params.file.replace(/\.gif$/i, '')
      if (!call.isHead) await recordOpen(ctx, reference, call.header('user-agent'))
      return { status: 200, body: PIXEL, headers: PIXEL_HEADERS }
    },
  }),
  route({
    ...common,
    operation: 'clickEmail',
    path: '/e/c/:reference/:signature',
    summary: 'A link in an email',
    description: 'Leads to `u` if that was signed for this app, and nowhere else. HEAD counts nothing.',
    access: { kind: 'public' },
    params: Type.Object({ reference, signature: Type.String() }),
    query: Type.Object({ u: Type.Optional(Type.Unknown({ description: 'Where the link leads.' })) }),
    answers: { 302: Type.String() },
    produces: 'text/plain',
    async handle(call) {
      const url = typeof call.query.u === 'string' ? call.query.u : ''
      const click = { ...call.params, url, agent: call.header('user-agent') }
      const location = readLink(ctx, click)
      if (location === undefined) return badLinkPage()
      if (!call.isHead) await recordClick(ctx, click)
      const headers = { location, 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' }
      return { status: 302, body: '', headers: { ...headers, 'referrer-policy': 'no-referrer' } }
    },
  }),
  route({
    ...common,
    operation: 'viewEmail',
    path: '/e/v/:reference',
    summary: 'An email in the browser',
    description: 'Its content for that person, without tracking. 410 when it is not kept any more.',
    access: { kind: 'public', isCounted: true },
    params: Type.Object({ reference }),
    answers: { 200: Type.String() },
    produces: 'text/html',
    async handle({ params }) {
      const named = ctx.emailFeedback.references.read(params.reference, 'view')
      return named ? viewEmail(ctx, named) : unknownPage()
    },
  }),
]
