// compile.ts and evaluate.ts mean the same: generated filters over generated people, the set that PostgreSQL finds against
// the set that the evaluator finds.

import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../../test/app.ts'
import { filterOf, filters, NOW, type Person, person } from '../../../test/segments/generate.ts'
import { newId, type UserId } from '../../lib/ids.ts'
import { addMonths } from '../../storage/partitions.ts'
import { sql } from '../../storage/sql.ts'
import { insertAliases } from '../../users/aliases/store.ts'
import { adjustUserCounts } from '../../users/count-store.ts'
import { loadReferencedUsers } from '../../users/load-store.ts'
import { formatAmount, multiplyAmount } from '../../users/properties/amount.ts'
import { insertPurchases, insertUsers } from '../../users/properties/store.ts'
import { userRow } from '../../users/rows.ts'
import { insertSubscriptions, upsertSubscriptionActivity } from '../../users/subscriptions/store.ts'
import {
  type AudienceMember,
  countAudience,
  countRecipients,
  findInRange,
  findRangeEnd,
  matchSubscriptions,
  matchUsers,
  restrictToReachable,
  selectAudience,
} from '../audience.ts'
import { channelOfType, type FilterSubject, matchesFilter } from './evaluate.ts'
import { readFilters } from './read-filters.ts'
import { audienceChannels, type FilterNode } from './tree.ts'
import { daysBefore } from './values.ts'

const PEOPLE = 400
const SEED = Number(process.env.SEED ?? 20_300_101)

let app: TestApp
let subjects: FilterSubject[]
const scope = () => ({ appId: app.tenant.id, now: NOW })

beforeAll(async () => {
  app = await testApp()
  subjects = await store(distinct(fc.sample(person, { numRuns: PEOPLE, seed: SEED })))
  expect(subjects.length).toBeGreaterThan(PEOPLE)
})
afterAll(() => app.close())

/** Aliases and addresses have one owner; the people were made up apart from each other. */
function distinct(people: Person[]): Person[] {
  const taken = new Set<string>()
  const isFirst = (key: string) => !taken.has(key) && taken.add(key)
  for (const { user } of people) {
    for (const [label, value] of user.aliases) if (!isFirst(`${label} ${value}`)) user.aliases.delete(label)
    for (const { id, type, tokenHash } of user.subscriptions.values())
      if (tokenHash !== null && !isFirst(`${type} ${tokenHash}`)) user.subscriptions.delete(id)
  }
  return people
}

async function store(people: Person[]): Promise<FilterSubject[]> {
  const { db } = app
  const { id: appId } = app.tenant
  const users = people.map(({ user }) => user)
  const subscriptions = users.flatMap((user) => [...user.subscriptions.values()])
  await insertUsers(db, appId, users.map(userRow), NOW)
  const aliases = users.flatMap(({ id, aliases }) =>
    [...aliases].map(([label, value]) => ({ userId: id, label, value })),
  )
  await insertAliases(db, appId, aliases)
  await insertSubscriptions(db, appId, subscriptions)
  const counts = users.map(({ id, subscriptions }) => ({ id, aliases: 0, subscriptions: subscriptions.size }))
  await adjustUserCounts(db, appId, counts, NOW)
  // Those without a session have no row.
  const active = subscriptions.filter(
    (it) => it.sessionCount > 0 || it.sessionTime > 0 || it.lastActive !== it.createdAt,
  )
  await upsertSubscriptionActivity(db, appId, active)
  await insertPurchases(
    db,
    appId,
    people.map(({ user, purchases }) => ({ userId: user.id, purchases })),
    NOW,
    newId,
  )
  await storeEvents(people)
  // As a server at work does by itself: plans for tables that look empty would take seconds here.
  await db.query(sql`analyze`)

  const byId = new Map<UserId, Person>(people.map((it) => [it.user.id, it]))
  const stored = await loadReferencedUsers(
    db,
    appId,
    users.map(({ id }) => ({ id })),
    { subscriptions: true, purchases: true },
  )
  return stored.flatMap((user) => {
    if (!user) throw new Error('somebody was not stored')
    const { purchases, events } = byId.get(user.id) as Person
    return [...user.subscriptions.values()].map((subscription) => ({
      user,
      subscription,
      spentOn: (sku) => {
        const bought = purchases.filter((it) => it.sku === sku)
        const sum = bought.reduce((total, it) => total + multiplyAmount(it.amount.replace(/^\D/, ''), it.count), 0n)
        return bought.length === 0 ? null : formatAmount(sum)
      },
      countEvents: (name, days) =>
        events.filter((it) => {
          const at = Date.parse(it.at)
          return it.name === name && at <= NOW.getTime() && (days === undefined || at > daysBefore(NOW, days).getTime())
        }).length,
    }))
  })
}

async function storeEvents(people: Person[]) {
  const list = people.flatMap(({ user, events }) => events.map((it) => ({ ...it, user_id: user.id, id: newId() })))
  await addMonths(app.db, 'events', daysBefore(NOW, 60), NOW)
  await app.db.query(sql`
    insert into events (app_id, user_id, name, at, id, received_at)
    select a.id, r.user_id, r.name, r.at, r.id, r.at
    from apps a cross join jsonb_to_recordset(${JSON.stringify(list)}::jsonb) as r(user_id uuid, name text, at timestamptz, id uuid)
    where a.id = ${app.tenant.id}`)
}

const judged = (node: FilterNode) =>
  subjects
    .filter((subject) => matchesFilter(node, subject, NOW))
    .map(({ subscription }) => subscription.id)
    .sort()

async function expectAgreement(node: FilterNode) {
  const expected = judged(node)
  const found = await app.db.query<AudienceMember>(selectAudience(node, scope()), { prepare: false })
  expect(found.map(({ id }) => id).sort()).toEqual(expected)
  const inRange = await findInRange(app.db, node, scope(), { after: undefined, upTo: undefined })
  expect(inRange.map(({ id }) => id)).toEqual(expected)
  expect(await countAudience(app.db, node, scope())).toBe(expected.length)
  return expected.length
}

describe.each(Object.entries(filterOf))('%s', (_, filter) => {
  test('means the same in SQL and in TypeScript', async () => {
    const sizes = new Set<number>()
    await fc.assert(
      fc.asyncProperty(filter, async (it) => {
        sizes.add(await expectAgreement(readFilters([it]).tree))
      }),
      { numRuns: 60, seed: SEED },
    )
    // Filters that find nobody, or everybody, would agree on anything.
    expect(sizes.size).toBeGreaterThan(1)
  })
})

test('lists with operators and groups mean the same', async () => {
  await fc.assert(
    fc.asyncProperty(filters, (list) => expectAgreement(readFilters(list).tree).then(() => {})),
    { numRuns: 400, seed: SEED },
  )
})

test('what is included, what is excluded and who can be reached on a channel mean the same', async () => {
  const list = fc.array(filters, { minLength: 0, maxLength: 2 })
  await fc.assert(
    fc.asyncProperty(
      list,
      list,
      fc.constantFrom(...audienceChannels, undefined),
      async (included, excluded, channel) => {
        const trees = (lists: object[][]) => lists.map((it) => readFilters(it).tree)
        const among: FilterNode = included.length === 0 ? { kind: 'all', of: [] } : { kind: 'any', of: trees(included) }
        const node = restrictToReachable({ kind: 'all', of: [among, { kind: 'none', of: trees(excluded) }] }, channel)
        await expectAgreement(node)
        const counts = await countRecipients(app.db, node, scope())
        for (const it of audienceChannels) {
          const types = subjects.filter(({ subscription }) => channelOfType(subscription.type) === it)
          expect(counts[it]).toBe(types.filter((subject) => matchesFilter(node, subject, NOW)).length)
        }
      },
    ),
    { numRuns: 100, seed: SEED },
  )
})

test('several trees judged at once for some subscriptions mean the same', async () => {
  const lists = fc.array(filters, { minLength: 0, maxLength: 5 })
  await fc.assert(
    fc.asyncProperty(lists, fc.subarray(subjects, { minLength: 1, maxLength: 20 }), async (given, some) => {
      const nodes = given.map((it) => readFilters(it).tree)
      const ids = [...some.map(({ subscription }) => subscription.id), newId()]
      const found = await matchSubscriptions(app.db, nodes, scope(), ids)
      expect(new Map(found.map(({ id, userId, type, matches: holds }) => [id, { userId, type, holds }]))).toEqual(
        new Map(
          some.map((subject) => {
            const { id, userId, type } = subject.subscription
            return [id, { userId, type, holds: nodes.map((node) => matchesFilter(node, subject, NOW)) }]
          }),
        ),
      )
    }),
    { numRuns: 100, seed: SEED },
  )
})

test('several trees judged at once for some users hold where they hold for any subscription of the user', async () => {
  const lists = fc.array(filters, { minLength: 0, maxLength: 5 })
  await fc.assert(
    fc.asyncProperty(lists, fc.subarray(subjects, { minLength: 1, maxLength: 20 }), async (given, some) => {
      const nodes = given.map((it) => readFilters(it).tree)
      const ids = [...new Set(some.map(({ subscription }) => subscription.userId))]
      const found = await matchUsers(app.db, nodes, scope(), [...ids, newId()])
      const holdsForAny = (id: UserId) => {
        const own = subjects.filter(({ subscription }) => subscription.userId === id)
        return nodes.map((node) => own.some((subject) => matchesFilter(node, subject, NOW)))
      }
      expect(new Map(found.map(({ userId, matches: holds }) => [userId, holds]))).toEqual(
        new Map(ids.map((id) => [id, holdsForAny(id)])),
      )
    }),
    { numRuns: 100, seed: SEED },
  )
})

test('ranges of ids hold everybody once', async () => {
  const { tree } = readFilters([{ field: 'country', relation: '!=', value: 'DE' }])
  const found: string[] = []
  let after: string | undefined
  do {
    const upTo = await findRangeEnd(app.db, scope(), after, 37)
    found.push(...(await findInRange(app.db, tree, scope(), { after, upTo })).map(({ id }) => id))
    after = upTo
  } while (after !== undefined)
  expect(found).toEqual(judged(tree))
})
