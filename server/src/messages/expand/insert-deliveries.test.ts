// The statements of expansion are not in the sources, so they are made here, in every form, and held to the rules that all others
// keep.

import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestDatabase, testDatabase } from '../../../test/database.ts'
import { readCatalogue } from '../../../test/sql-rules/catalogue.ts'
import { GLOBAL_TABLES } from '../../../test/sql-rules/exceptions.ts'
import { knownTables } from '../../../test/sql-rules/schema-rules.ts'
import { checkStatement, type KnownTables } from '../../../test/sql-rules/statement-rules.ts'
import { newId } from '../../lib/ids.ts'
import { audienceInRange, idsStatement } from '../../segments/audience.ts'
import { readFilters } from '../../segments/filters/read-filters.ts'
import { sql } from '../../storage/sql.ts'
import { emailDomainsStatement } from '../email/look-up-hosts.ts'
import { candidatesById, candidatesByName, candidatesInRuns, candidatesOfUsers } from './candidates.ts'
import { ALL_SHARDS, type DueTiming, expandStatement, zonesStatement } from './insert-deliveries.ts'

let database: TestDatabase
let known: KnownTables
beforeAll(async () => {
  database = await testDatabase()
  known = knownTables(await readCatalogue(database.db), Object.keys(GLOBAL_TABLES))
})
afterAll(() => database.close())

const NOW = new Date('2030-01-01T09:00:00Z')
const scope = { appId: newId(), now: NOW }
const messageId = newId()
const plan = {
  id: messageId,
  lane: 'bulk',
  expandAt: NOW,
  dueAt: NOW,
  lifetimeSeconds: 60,
  includesUnsubscribed: false,
} as const
const provider = { messageId, type: 'iOSPush', provider: 'apns', reason: null } as const

const timings: DueTiming[] = [
  { kind: 'at once' },
  { kind: 'last active' },
  { kind: 'throttled', perMinute: 10 },
  { kind: 'staged', stages: [{ start: NOW, end: NOW, quota: 10 }], after: 0 },
  {
    kind: 'zones',
    fallback: NOW,
    byZone: [{ zone: 'Europe/Paris', dueAt: NOW }],
    byOffset: [{ seconds: 0, dueAt: NOW }],
  },
]
const filters = [{ field: 'tag', key: 'level', relation: '=', value: '1' }]
const audiences = [
  candidatesInRuns(scope.appId, [{ messageId, userId: newId(), runId: newId(), step: 1 }]),
  candidatesByName(scope.appId, [{ messageId, subscriptionId: newId() }]),
  candidatesById(scope.appId, `{${newId()}}`),
]

test.each(timings)('the statement for those that are due $kind keeps the rules', (timing) => {
  for (const candidates of audiences)
    for (const onlyTestUsers of [false, true]) {
      const expansion = { plans: [plan], providers: [provider], candidates, timing, shards: ALL_SHARDS, onlyTestUsers }
      expect(checkStatement(expandStatement(scope.appId, expansion, NOW).text, known)).toEqual([])
    }
})

test('the statement that finds the ids of an audience keeps the rules', () => {
  const audience = audienceInRange(readFilters(filters).tree, scope, { after: newId(), upTo: newId() }, sql`s.id`)
  expect(checkStatement(idsStatement(audience).text, known)).toEqual([])
})

test('the statement that looks for time zones keeps the rules', () => {
  for (const candidates of audiences)
    expect(checkStatement(zonesStatement(scope.appId, candidates).text, known)).toEqual([])
})

test('the statement that looks for domains of mailboxes keeps the rules', () => {
  for (const candidates of [...audiences, candidatesOfUsers(scope.appId, [newId()])])
    expect(checkStatement(emailDomainsStatement(candidates.rows).text, known)).toEqual([])
})
