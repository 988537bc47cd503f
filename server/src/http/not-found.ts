// Answers requests that match no route: another method on a known path, a preflight, or an unknown path.

import { AppError } from '../lib/errors.ts'
import { preflightHeaders } from './cors.ts'
import { errorAnswer } from './errors.ts'
import type { Answer } from './route.ts'

type KnownPath = { segments: string[]; methods: string[]; openMethods: string[] }

export type PathTable = { answer(method: string, url: string): Answer }

export function createPathTable(
  routes: readonly { method: string; path: string; isOpenToSites: boolean }[],
  prefixes: readonly string[],
): PathTable {
  const known = new Map<string, KnownPath>()
  for (const { method, path, isOpenToSites } of routes)
    for (const prefix of prefixes) {
      const shape = (path === '/' && prefix !== '' ? prefix : `${prefix}${path}`).replaceAll(/:\w+/g, ':')
      const entry = known.get(shape) ?? { segments: shape.split('/'), methods: [], openMethods: [] }
      known.set(shape, entry)
      const methods = method === 'GET' ? ['GET', 'HEAD'] : [method]
      entry.methods.push(...methods)
      if (isOpenToSites) entry.openMethods.push(...methods)
    }
  const paths = [...known.values()]

  return {
    answer(method, url) {
      const path = url.split(/[?#]/, 1)[0] as string
      const found = paths.filter(({ segments }) => matches(segments, path.split('/')))
      if (found.length === 0) return notFound()
      const openMethods = found.flatMap((entry) => entry.openMethods)
      if (method === 'OPTIONS' && openMethods.length > 0)
        return { status: 204, body: undefined, headers: preflightHeaders(openMethods) }
      const allowed = found.flatMap((entry) => entry.methods)
      if (openMethods.length > 0) allowed.push('OPTIONS')
      return methodNotAllowed([...new Set(allowed)].sort())
    },
  }
}

const matches = (known: string[], given: string[]) =>
  known.length === given.length &&
  known.every((segment, i) => (segment === ':' ? given[i] !== '' : segment === given[i]))

// An unknown path belongs to no family, so it gets the plain error shape.
const notFound = (): Answer => errorAnswer(new AppError('not-found', { code: 'route-0', title: 'Not found' }), 'apps')

function methodNotAllowed(allowed: string[]): Answer {
  const error = new AppError('method-not-allowed', { code: 'route-1', title: 'Method not allowed' })
  const answer = errorAnswer(error, 'apps')
  return { ...answer, headers: { ...answer.headers, allow: allowed.join(', ') } }
}
