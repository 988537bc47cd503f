// Are the server's answers and rows what the model says? Ids are whatever the server made of them, but one and the same
// everywhere: each name of the model stands for one UUID, and no two names for the same.

import { isDeepStrictEqual } from 'node:util'
import type { Answer as Received } from '../app.ts'
import type { Answer as Expected } from './model.ts'

export type Bindings = ReadonlyMap<string, string>

const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const isName = (value: unknown): value is string => typeof value === 'string' && value.startsWith('§')

/** What the names stand for after this answer, or undefined where the answer is not the expected one. */
export function matchAnswer(
  expected: Expected,
  received: Pick<Received, 'status' | 'body'>,
  bindings: Bindings,
): Bindings | undefined {
  if (expected.status !== received.status) return undefined
  if ('problem' in expected) return matchProblem(expected.problem, received.body, bindings)
  if ('legacyProblem' in expected) return isLegacyProblem(received.body) ? bindings : undefined
  const bound = new Map(bindings)
  return matches(expected.body, received.body, bound) ? bound : undefined
}

/** Codes and `meta` are the interface; titles are words for people. */
function matchProblem(problem: { code: string; meta?: unknown }, body: unknown, bindings: Bindings) {
  const { errors } = body as { errors: { code: string; title: unknown; meta?: unknown }[] }
  const [error] = errors
  const isOne = errors.length === 1 && error?.code === problem.code && typeof error.title === 'string'
  if (!isOne || error.title === '') return undefined
  const bound = new Map(bindings)
  return problem.meta === undefined || matches(problem.meta, error.meta, bound) ? bound : undefined
}

function isLegacyProblem(body: unknown): boolean {
  const { success, errors } = body as { success?: unknown; errors?: unknown }
  return success === false && Array.isArray(errors) && errors.length > 0 && errors.every((it) => typeof it === 'string')
}

type Ordered = { oldestFirst: { at: number; item: { id: string } }[] }
const isOrdered = (value: object): value is Ordered => 'oldestFirst' in value

function matches(expected: unknown, received: unknown, bound: Map<string, string>): boolean {
  if (isName(expected)) return bind(expected, received, bound)
  if (expected === null || typeof expected !== 'object') return expected === received
  if (isOrdered(expected)) return matches(inOrder(expected, bound), received, bound)
  if (received === null || typeof received !== 'object') return false
  const names = Object.keys(expected)
  if (Array.isArray(expected) !== Array.isArray(received)) return false
  if (!isDeepStrictEqual(new Set(names), new Set(Object.keys(received)))) return false
  return names.every((name) =>
    matches((expected as Record<string, unknown>)[name], (received as Record<string, unknown>)[name], bound),
  )
}

/** What was made at the same time stands in the order of its ids. */
function inOrder({ oldestFirst }: Ordered, bound: Map<string, string>): unknown[] {
  const idOf = ({ item }: Ordered['oldestFirst'][number]) => bound.get(item.id) ?? ''
  return oldestFirst.toSorted((a, b) => a.at - b.at || (idOf(a) < idOf(b) ? -1 : 1)).map(({ item }) => item)
}

function bind(name: string, id: unknown, bound: Map<string, string>): boolean {
  const known = bound.get(name)
  if (known !== undefined) return known === id
  if (typeof id !== 'string' || !UUID_V4.test(id)) return false
  for (const taken of bound.values()) if (taken === id) return false
  bound.set(name, id)
  return true
}
