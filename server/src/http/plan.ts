// What can be computed once per route, so that requests do not pay for it.

import { type ErrorStyle, errorStyles } from './errors.ts'
import type { Metrics, OperationStats } from './metrics.ts'
import { type Conversions, conversionsOf } from './read-query.ts'
import type { Charge, LimitCounter, Route } from './route.ts'
import { type Compilers, compileValidator, type Validate } from './validate.ts'

export const DEFAULT_MAX_BODY_BYTES = 1_048_576
export const DEFAULT_MAX_KEYS = 2_000
export const DEFAULT_MAX_DEPTH = 32
/**
 * More than the largest sensible bodies contain: 20,000 recipients, 10,000 events. Parsing this many takes about 50 ms.
 */
export const MAX_VALUES = 100_000

export type RoutePlan = {
  route: Route
  style: ErrorStyle
  usesObjects: boolean
  /** Where the app's id is; `none` on routes that concern no app. */
  appIn: 'path' | 'query' | 'body' | 'none'
  /** Whether scripts of any site may call it. True where no key is needed. */
  isOpenToSites: boolean
  maxBodyBytes: number
  maxKeys: number
  maxDepth: number
  maxValues: number
  conversions: Conversions
  paramNames: string[]
  /** Path parameters that are ids: accepted in any letter case, and converted to lower case. */
  idParams: string[]
  validateParams: Validate | undefined
  validateQuery: Validate | undefined
  validateBody: Validate | undefined
  /** The rate limits that every request of this route counts against; undefined when they depend on the request. */
  charges: Charge[] | undefined
  stats: OperationStats
}

export const pathParams = (path: string) => [...path.matchAll(/:([A-Za-z_]\w*)/g)].map((match) => match[1] as string)

export function planRoute(route: Route, compilers: Compilers, metrics: Metrics): RoutePlan {
  const { access } = route
  const usesObjects = errorStyles[route.errors].shape === 'objects'
  return {
    route,
    style: route.errors,
    usesObjects,
    appIn: appIn(route),
    isOpenToSites: access.kind === 'public' || (access.kind === 'app' && access.keyless !== undefined),
    maxBodyBytes: route.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES,
    maxKeys: route.maxKeys ?? DEFAULT_MAX_KEYS,
    maxDepth: route.maxDepth ?? DEFAULT_MAX_DEPTH,
    maxValues: MAX_VALUES,
    conversions: conversionsOf(route.query),
    paramNames: pathParams(route.path),
    idParams: idParams(route),
    validateParams: compileValidator(compilers, 'params', route.params, usesObjects),
    validateQuery: compileValidator(compilers, 'query', route.query, usesObjects),
    validateBody: compileValidator(compilers, 'body', route.body, usesObjects),
    charges: route.limits.every(({ subjects, when }) => !subjects && !when)
      ? route.limits.map(({ rule, counter }) => ({ rule, counter: counter ?? route.operation }))
      : undefined,
    stats: metrics.operation(route.operation),
  }
}

/** An organization's route concerns an app when its path names one; the organization must own the app. */
function appIn({ access, path }: Route): RoutePlan['appIn'] {
  if (access.kind === 'app') return access.appIn
  if (access.kind === 'organization' && access.appIn) return access.appIn
  return access.kind === 'organization' && pathParams(path).includes('app_id') ? 'path' : 'none'
}

type ParamProperty = { format?: string }

function idParams(route: Route): string[] {
  const properties = (route.params as { properties?: Record<string, ParamProperty> } | undefined)?.properties ?? {}
  return pathParams(route.path).filter((name) => name === 'app_id' || properties[name]?.format === 'uuid')
}

/** Finds mistakes in the route table. A server with any of them does not start. */
export function findRouteProblems(routes: readonly Route[], limits: LimitCounter): string[] {
  const problems: string[] = []
  const operations = new Set<string>()
  const places = new Set<string>()
  for (const route of routes) {
    const name = route.operation || `${route.method} ${route.path}`
    const say = (problem: string) => problems.push(`${name} ${problem}`)
    if (!route.operation) say('has no operation')
    if (operations.has(route.operation)) say('is declared twice')
    operations.add(route.operation)
    const place = `${route.method} ${route.path.replaceAll(/:\w+/g, ':')}`
    if (places.has(place)) say('has the method and path of another operation')
    places.add(place)
    if (!route.access) say('does not declare who may call it (access)')
    if (!route.limits) say('does not declare its limits')
    if (!route.errors) say('does not declare the shape of its errors')
    else if (!Object.hasOwn(errorStyles, route.errors))
      say(`names the error style "${route.errors}", which is not there`)
    if (!route.answers || Object.keys(route.answers).length === 0) say('does not declare its answers')
    for (const { rule } of route.limits ?? [])
      if (!limits.has(rule)) say(`names the limit "${rule}", which is not there`)
    if (!route.access) continue
    const where = appIn(route)
    if (where === 'none' && (route.limits?.length ?? 0) > 0) say('has limits, which are counted per app, but no app')
    if (where === 'path' && !pathParams(route.path).includes('app_id')) say('has no :app_id in its path')
    if (where === 'body' && !route.body) say('takes the app from a body that it does not declare')
    if (route.body && route.method === 'GET') say('declares a body, which GET has not')
    const declared = Object.keys((route.params as { properties?: object } | undefined)?.properties ?? {})
    for (const param of declared)
      if (!pathParams(route.path).includes(param)) say(`declares the path parameter ${param}, which its path has not`)
  }
  return problems
}
