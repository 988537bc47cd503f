import { afterEach, beforeEach, expect, test } from 'vitest'
import { SYSTEM } from '../../src/apps/app.ts'
import { issueKey, revokeKey } from '../../src/apps/keys/keys.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { urlOf } from '../command-line.ts'
import { emptyDatabase, type TestDatabase } from '../database.ts'
import { type FirstKeys, launch, printedKeys, type Server, until, viewUser } from '../process/launch.ts'

let database: TestDatabase
let servers: Server[]
let urls: string[]
let keys: FirstKeys

beforeEach(async () => {
  database = await emptyDatabase()
  const env = { DATABASE_URL: urlOf(database.connection), UNSAFE_DURABILITY: 'true', LIMITS: 'spec', ROLE: 'api' }
  servers = [await launch({ env }), await launch({ env })]
  urls = await Promise.all(servers.map((server) => server.ready()))
  const shown = servers.find((server) => server.out().includes('app key'))
  keys = printedKeys(shown?.out() ?? '')
})
afterEach(() => database.close())

test('a key that is revoked is dead on both servers within 5 s', async () => {
  const ctx = { db: database.db, clock: systemClock() }
  const scope = { kind: 'app' as const, appId: keys.appId }
  const issued = await issueKey(ctx, scope, { name: 'to be revoked' }, SYSTEM)
  const statuses = () =>
    Promise.all(urls.map(async (url) => (await viewUser(url, { ...keys, appKey: issued.key }, 'nobody')).status))
  // Known to both, and used: 404 for the user that is not there, 429 for asking often.
  for (const status of await statuses()) expect([404, 429]).toContain(status)
  await revokeKey(ctx, scope, issued.keyId, SYSTEM)
  await until(async () => (await statuses()).every((status) => status === 401))
})

test('two servers together let in what one may, to the request', async () => {
  // View: 1 in any second, per app. Each knows of the other only through the database.
  const admitted: { sent: number; answered: number }[] = []
  const began = performance.now()
  const ask = async (url: string) => {
    while (performance.now() - began < 4_000) {
      const sent = performance.now()
      const { status } = await viewUser(url, keys, 'nobody')
      expect([404, 429]).toContain(status)
      if (status === 404) admitted.push({ sent, answered: performance.now() })
    }
  }
  await Promise.all(urls.flatMap((url) => [ask(url), ask(url)]))
  admitted.sort((a, b) => a.answered - b.answered)
  // A request was judged some time between being sent and being answered, so two that were judged a second apart are
  // at least that far from the first one's sending to the second one's answer.
  for (const [i, later] of admitted.entries())
    if (i > 0) expect(later.answered - (admitted[i - 1] as { sent: number }).sent).toBeGreaterThanOrEqual(1_000)
  expect(admitted.length).toBeGreaterThanOrEqual(2)
})
