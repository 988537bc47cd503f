import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { systemClock } from '../lib/clock.ts'
import { Sql, sql } from '../storage/sql.ts'
import { countStatement } from './audience.ts'
import { readFilters } from './filters/read-filters.ts'
import { findTagIndexes, indexName } from './index-store.ts'
import { indexTags } from './index-tags.ts'

let app: TestApp
const opened: TestApp[] = []
beforeEach(async () => {
  app = await testApp()
  opened.push(app)
})
afterAll(() => Promise.all(opened.map((it) => it.close())))

const tagged = (key: string, relation = '=', value = 'v7') => [{ field: 'tag', key, relation, value }]
const aSegment = async (filters: object[], name = JSON.stringify(filters).slice(0, 128)) => {
  const { status, body } = await app.app('/segments', { body: { name, filters } })
  expect(status).toBe(201)
  return body.id as string
}

const manyUsers = (count: number) =>
  app.db.query(sql`
    insert into users (app_id, id, tags, first_active, created_at, updated_at)
    select ${app.tenant.id}, gen_random_uuid(), jsonb_build_object('plan', 'v' || n, 'city', 'c' || n), now(), now(), now()
    from generate_series(1, ${count}::integer) n`)

const indexes = async () => (await findTagIndexes(app.db)).map(({ name }) => name)

describe('an index on a tag', () => {
  test('is made for what segments of large apps compare with values, and for nothing else', async () => {
    await manyUsers(100)
    await aSegment(tagged('plan'))
    await aSegment([{ group: tagged('city', 'in_array', 'a,b') }])
    await aSegment(tagged('level', '>', '5'))
    await aSegment(tagged("o'hara; drop table users"))
    await indexTags(app.db, { minUsers: 101 })
    expect(await indexes()).toEqual([])
    await indexTags(app.db, { minUsers: 100 })
    expect(await indexes()).toEqual([indexName('plan'), indexName('city')].sort())
    expect((await findTagIndexes(app.db)).every(({ isValid }) => isValid)).toBe(true)
  })

  test('is what a count uses, although the key is a bound value', async () => {
    await manyUsers(5_000)
    await aSegment(tagged('plan'))
    await indexTags(app.db, { minUsers: 100 })
    const scope = { appId: app.tenant.id, now: systemClock().now() }
    for (const filters of [tagged('plan'), tagged('plan', 'in_array', 'v7,v8')]) {
      const { text, values } = countStatement(readFilters(filters).tree, scope)
      const plan = await app.db.query<{ queryPlan: string }>(new Sql(`explain ${text}`, values), { prepare: false })
      expect(JSON.stringify(plan)).toContain(indexName('plan'))
    }
  })

  test('is dropped when no segment asks for it any more, and kept when an app shrinks a little', async () => {
    await manyUsers(100)
    const id = await aSegment(tagged('plan'))
    await indexTags(app.db, { minUsers: 100 })
    await indexTags(app.db, { minUsers: 150 })
    expect(await indexes()).toEqual([indexName('plan')])
    await indexTags(app.db, { minUsers: 250 })
    expect(await indexes()).toEqual([])
    await indexTags(app.db, { minUsers: 100 })
    await app.app(`/segments/${id}`, { method: 'DELETE' })
    await indexTags(app.db, { minUsers: 100 })
    expect(await indexes()).toEqual([])
  })

  test('goes to the tags that most segments use when there are more than indexes', async () => {
    await manyUsers(100)
    for (const name of ['a', 'b']) await aSegment(tagged('city'), name)
    for (const key of ['plan', 'other']) await aSegment(tagged(key))
    await indexTags(app.db, { minUsers: 100, maxIndexes: 1 })
    expect(await indexes()).toEqual([indexName('city')])
  })

  test('that a crash left half made is made again', async () => {
    await manyUsers(100)
    await aSegment(tagged('plan'))
    await indexTags(app.db, { minUsers: 100 })
    await app.db.query(
      sql`update pg_index set indisvalid = false where indexrelid = ${indexName('plan')}::text::regclass`,
    )
    await indexTags(app.db, { minUsers: 100 })
    expect(await findTagIndexes(app.db)).toEqual([{ name: indexName('plan'), isValid: true }])
  })
})
