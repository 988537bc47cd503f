// Every declared route, asked for what makes no sense. Whatever it is, there is an answer, it is none of 5xx, and nobody else waits
// for it: the event loop is never blocked for long.

import { randomInt } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { declaredRoutes } from '../../src/composition/declared-routes.ts'
import type { Route } from '../../src/http/route.ts'
import { isFull } from '../chaos/ledger.ts'
import { ask, closeClient, type FuzzAnswer, type FuzzRequest } from './ask.ts'
import { largeRequestsFor, misencodedRequestsFor, requestsFor } from './requests.ts'
import { type FuzzedServer, startFuzzedServer } from './server.ts'
import { makeThings } from './things.ts'
import { PROTOTYPE_NAMES } from './values.ts'

const REQUESTS_EACH = isFull ? 200 : 12
/** Of the large bodies of a route, and of those that are said to be encoded. */
const LARGE_EACH = isFull ? 1_000 : 2
const MISENCODED_EACH = isFull ? 1_000 : 1
/** Enough to see what is wrong. */
const MAX_PROBLEMS = isFull ? 50 : 10
/** Always the same requests in CI; a full run tries others each time, and FUZZ_SEED tries them again. */
const SEED = Number(process.env.FUZZ_SEED ?? (isFull ? randomInt(2 ** 30) : 15))
const AT_ONCE = 6
const MAX_BLOCK_MS = isFull ? 100 : 250
/** A block counts if it is there each time: a machine that others use too pauses now and then. */
const TRIES = 3

afterAll(closeClient)

/** What removes and what switches off comes last, so that the others find what they are about. */
const ORDER = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
const rankOf = ({ method, operation }: Route) => (operation === 'updateApp' ? ORDER.length : ORDER.indexOf(method))

function routesInOrder(): Route[] {
  const { domains, kit } = declaredRoutes()
  return [...domains, ...kit].toSorted((a, b) => rankOf(a) - rankOf(b))
}

const nowhere: FuzzRequest[] = ['GET', 'POST', 'OPTIONS', 'PROPFIND', 'DELETE'].flatMap((method) =>
  [...PROTOTYPE_NAMES, '%', '%00', 'apps/%', 'api/v1/__proto__'].map((path) => ({
    method,
    path: `/${path}`,
    headers: {},
  })),
)

test('every route answers whatever it is asked, and holds up nobody', async () => {
  console.log(`fuzz: FUZZ_SEED=${SEED}`)
  const server = await startFuzzedServer()
  const things = await makeThings(server)
  const problems: string[] = []
  const blocks: { ms: number; request: string }[] = []
  let asked = 0

  async function askAll(route: Route | undefined, requests: readonly FuzzRequest[]) {
    for (let at = 0; at < requests.length; at += AT_ONCE)
      await Promise.all(
        requests.slice(at, at + AT_ONCE).map(async (request) => {
          const problem = judge(route, request, await ask(server.url, request))
          if (problem) problems.push(`${describe(request)}: ${problem}`)
        }),
      )
    asked += requests.length
    if ((await server.loopDelay()).blockMs <= MAX_BLOCK_MS) return
    // Which of them was it?
    for (const request of requests) {
      const ms = await blockOf(server, request)
      blocks.push({ ms, request: describe(request) })
      if (ms > MAX_BLOCK_MS) problems.push(`the event loop was blocked for ${ms.toFixed()} ms by ${describe(request)}`)
    }
  }

  await server.loopDelay()
  await askAll(undefined, nowhere)
  for (const [n, route] of routesInOrder().entries()) {
    const sampled = fc.sample(requestsFor(route, server.keys, things), { seed: SEED + n, numRuns: REQUESTS_EACH })
    const misencoded = turnsOf(misencodedRequestsFor(route, server.keys, things), n, MISENCODED_EACH)
    const large = turnsOf(largeRequestsFor(route, server.keys, things), n, LARGE_EACH)
    await askAll(route, [...sampled, ...misencoded])
    for (const make of large) await askAll(route, [make()])
    if (problems.length >= MAX_PROBLEMS) break
  }
  const longest = blocks.toSorted((a, b) => b.ms - a.ms).slice(0, 5)
  console.log(`fuzz: ${asked} requests; longest blocks ${JSON.stringify(longest)}`)
  expect(problems, `FUZZ_SEED=${SEED}`).toEqual([])
  expect((await fetch(`${server.url}/health`)).status).toBe(200)
}, 3_600_000)

/** So many of the list, other ones for each route. */
const turnsOf = <Item>(list: readonly Item[], turn: number, count: number): Item[] =>
  Array.from({ length: Math.min(count, list.length) }, (_, n) => list[(turn * count + n) % list.length] as Item)

/** What the request takes of the loop by itself, each time that it is asked. */
async function blockOf(server: FuzzedServer, request: FuzzRequest): Promise<number> {
  let leastMs = Number.POSITIVE_INFINITY
  for (let n = 0; n < TRIES && leastMs > MAX_BLOCK_MS; n++) {
    await server.loopDelay()
    await ask(server.url, request)
    const { blockMs, processorMs } = await server.loopDelay()
    leastMs = Math.min(leastMs, blockMs, processorMs)
  }
  return leastMs
}

/** They also answer something else than JSON: a page to browsers, and a script where a callback is named. */
const MAY_ANSWER_OTHERWISE: readonly (string | undefined)[] = ['getHome', 'getWebConfig']

/** What is wrong with an answer, if anything is. */
function judge(route: Route | undefined, { method }: FuzzRequest, { status, type, text }: FuzzAnswer) {
  if (status === 0) return `no answer: ${text}`
  if (status >= 500) return `${status} ${text.slice(0, 200)}`
  if (method === 'HEAD' || status === 204 || (status >= 300 && status < 400)) return undefined
  if (
    (route?.produces !== undefined || MAY_ANSWER_OTHERWISE.includes(route?.operation)) &&
    !type.startsWith('application/json')
  )
    return undefined
  if (!type.startsWith('application/json'))
    return `${status} is ${type || 'of no type'}, not JSON: ${text.slice(0, 100)}`
  return isJson(text) ? undefined : `${status} is not JSON: ${text.slice(0, 100)}`
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const short = (text: string, most: number) => (text.length > most ? `${text.slice(0, most)}… (${text.length})` : text)

function describe({ method, path, headers, body }: FuzzRequest): string {
  const { authorization, ...rest } = headers
  const caller = authorization ? 'with a key' : 'without a key'
  return `${method} ${short(path, 200)} ${caller} ${short(JSON.stringify(rest), 200)} ${body ? short(body.toString(), 400) : ''}`
}
