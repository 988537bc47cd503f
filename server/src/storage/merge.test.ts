import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type TestDatabase, testDatabase } from '../../test/database.ts'
import { AppError, invalid, unavailable } from '../lib/errors.ts'
import { sqlState } from './db.ts'
import { createMerger, type MergeOutcome } from './merge.ts'
import { rows, sql } from './sql.ts'

const APP = 'a'

let database: TestDatabase
/** Sizes of the statements, in the order in which they ran. */
let batches: number[]

beforeAll(async () => {
  database = await testDatabase()
  await database.db.query(sql`create table notes (
    app_id text, id int, n int, constraint notes_pk primary key (app_id, id), constraint notes_small check (n < 1000))`)
})
afterAll(() => database.close())
beforeEach(async () => {
  batches = []
  await database.db.query(sql`delete from notes`)
})

const turn = () => new Promise((resolve) => setImmediate(resolve))

type Note = { id: number; n: string }

/** Inserts notes; an id below zero is answered with an error of its own, as a rule's refusal would be. */
const insertNotes = {
  name: 'insertNotes',
  async run(appId: string, inputs: Note[]): Promise<MergeOutcome<string>[]> {
    batches.push(inputs.length)
    const good = inputs.filter((note) => note.id >= 0)
    await database.db.query(sql`
      insert into notes (app_id, id, n)
      select ${appId}::text, r.id, r.n::int from jsonb_to_recordset(${rows(good)}) r (id int, n text)`)
    return inputs.map(({ id }) => (id < 0 ? { error: invalid(`bad ${id}`) } : { value: `${appId}${id}` }))
  },
}

const codeOf = (result: PromiseSettledResult<unknown>) =>
  result.status === 'rejected'
    ? (sqlState(result.reason) ?? (result.reason instanceof AppError ? result.reason.kind : result.reason))
    : result.value

describe('requests of one turn', () => {
  test('become one statement per app, and each caller gets his own answer', async () => {
    const insert = createMerger({ slots: 2 }).merged(insertNotes)
    const asked = [
      ...Array.from({ length: 50 }, (_, id) => insert('a', { id, n: '1' })),
      ...Array.from({ length: 30 }, (_, id) => insert('b', { id, n: '1' })),
    ]
    expect(await Promise.all(asked)).toEqual([
      ...Array.from({ length: 50 }, (_, id) => `a${id}`),
      ...Array.from({ length: 30 }, (_, id) => `b${id}`),
    ])
    expect(batches).toEqual([50, 30])
  })

  test('are split at the largest batch, and none is lost', async () => {
    const merger = createMerger({ slots: 2, maxBatch: 20 })
    const insert = merger.merged(insertNotes)
    const answers = await Promise.all(Array.from({ length: 45 }, (_, id) => insert(APP, { id, n: '1' })))
    expect(new Set(answers).size).toBe(45)
    expect(batches.sort((a, b) => b - a)).toEqual([20, 20, 5])
    expect(merger.stats()).toEqual({ batches: 3, requests: 45, waiting: 0 })
  })

  test('are halved where the operation wants it, down to a small batch', async () => {
    const insert = createMerger({ slots: 2 }).merged({ ...insertNotes, share: 0.5 })
    const answers = await Promise.all(Array.from({ length: 45 }, (_, id) => insert(APP, { id, n: '1' })))
    expect(new Set(answers).size).toBe(45)
    expect(batches).toEqual([23, 22])
    batches.length = 0
    const other = createMerger({ slots: 2 }).merged({ ...insertNotes, share: 0.5 })
    await Promise.all(Array.from({ length: 10 }, (_, id) => other(APP, { id: 100 + id, n: '1' })))
    expect(batches).toEqual([8, 2])
  })

  test('gather while all slots are busy', async () => {
    const started: number[][] = []
    const finish: (() => void)[] = []
    const merger = createMerger({ slots: 1 })
    const ask = merger.merged({
      name: 'ask',
      run: (_, inputs: number[]) => {
        started.push(inputs)
        return new Promise<MergeOutcome<number>[]>((resolve) => {
          finish.push(() => resolve(inputs.map((value) => ({ value }))))
        })
      },
    })
    const answers = [ask(APP, 1)]
    await turn()
    for (const n of [2, 3, 4]) {
      answers.push(ask(APP, n))
      await turn()
    }
    expect(started).toEqual([[1]])
    expect(merger.stats().waiting).toBe(3)
    finish[0]?.()
    await answers[0]
    await turn()
    finish[1]?.()
    expect(await Promise.all(answers)).toEqual([1, 2, 3, 4])
    expect(started).toEqual([[1], [2, 3, 4]])
  })

  test('are given to PostgreSQL before the first half is answered', async () => {
    const happened: string[] = []
    const note = createMerger({ slots: 1 }).merged({
      name: 'note',
      share: 0.5,
      async run(_, inputs: number[]): Promise<MergeOutcome<number>[]> {
        happened.push(`asked for ${inputs.length}`)
        await turn()
        return inputs.map((value) => ({ value }))
      },
    })
    const answered = async (n: number) => {
      await note(APP, n)
      if (n === 0 || n === 10) happened.push(`answered ${n}`)
    }
    await Promise.all(Array.from({ length: 20 }, (_, n) => answered(n)))
    expect(happened).toEqual(['asked for 10', 'asked for 10', 'answered 0', 'answered 10'])
  })
})

describe('one request’s fault', () => {
  test('that the operation reports is told to its caller alone, without a second statement', async () => {
    const insert = createMerger({ slots: 1 }).merged(insertNotes)
    const results = await Promise.allSettled([1, -2, 3].map((id) => insert(APP, { id, n: '1' })))
    expect(results.map(codeOf)).toEqual(['a1', 'invalid', 'a3'])
    expect(batches).toEqual([3])
  })

  test.for([
    ['bad data', { id: 2, n: 'many' }, '22P02'],
    ['a violated constraint', { id: 2, n: '5000' }, '23514'],
    ['a value that is taken', { id: 0, n: '1' }, '23505'],
  ] as const)('%s does not fail its neighbours', async ([, bad, code]) => {
    const insert = createMerger({ slots: 1 }).merged(insertNotes)
    await insert(APP, { id: 0, n: '1' })
    const results = await Promise.allSettled(
      [{ id: 1, n: '1' }, bad, { id: 3, n: '1' }].map((note) => insert(APP, note)),
    )
    expect(results.map(codeOf)).toEqual(['a1', code, 'a3'])
    expect(await database.db.query(sql`select id from notes order by id`)).toEqual([{ id: 0 }, { id: 1 }, { id: 3 }])
  })

  test('a lost race is tried again until it is won, and not for ever', async () => {
    const attempts = new Map<number, number>()
    const race = createMerger({ slots: 1 }).merged({
      name: 'race',
      async run(_, inputs: number[]): Promise<MergeOutcome<string>[]> {
        for (const input of inputs) attempts.set(input, (attempts.get(input) ?? 0) + 1)
        const loser = inputs.find((input) => (attempts.get(input) ?? 0) <= input)
        if (loser !== undefined)
          await database.db.query(
            sql`do $$ begin raise exception 'lost' using errcode = 'serialization_failure'; end $$`,
          )
        return inputs.map((input) => ({ value: `won ${input}` }))
      },
    })
    const results = await Promise.allSettled([0, 3, 1_000].map((losses) => race(APP, losses)))
    expect(results.map(codeOf)).toEqual(['won 0', 'won 3', '40001'])
    expect(attempts.get(1_000)).toBe(9)
  })
})

describe('an outage', () => {
  test('goes to all of the batch, in one statement', async () => {
    let statements = 0
    const ask = createMerger({ slots: 1 }).merged({
      name: 'ask',
      async run(): Promise<MergeOutcome<number>[]> {
        statements++
        throw unavailable()
      },
    })
    const results = await Promise.allSettled([1, 2, 3].map((n) => ask(APP, n)))
    expect(results.map(codeOf)).toEqual(['unavailable', 'unavailable', 'unavailable'])
    expect(statements).toBe(1)
  })

  test('that comes while requests are tried one by one goes to all that are left', async () => {
    let statements = 0
    const ask = createMerger({ slots: 1 }).merged({
      name: 'ask',
      async run(_, inputs: number[]): Promise<MergeOutcome<number>[]> {
        statements++
        if (inputs.length > 1) await database.db.query(sql`select 1 / 0`)
        if (inputs[0] === 2) throw unavailable()
        return inputs.map((value) => ({ value }))
      },
    })
    const results = await Promise.allSettled([1, 2, 3, 4].map((n) => ask(APP, n)))
    expect(results.map(codeOf)).toEqual([1, 'unavailable', 'unavailable', 'unavailable'])
    expect(statements).toBe(3)
  })

  test('of another kind, such as a programming mistake, goes to all as it is', async () => {
    const mistake = new TypeError('not a function')
    const ask = createMerger({ slots: 1 }).merged({
      name: 'ask',
      run: (): Promise<MergeOutcome<number>[]> => Promise.reject(mistake),
    })
    const results = await Promise.allSettled([1, 2].map((n) => ask(APP, n)))
    expect(results.map(codeOf)).toEqual([mistake, mistake])
  })

  test('an operation that answers too few is an error for those it forgot', async () => {
    const ask = createMerger({ slots: 1 }).merged({
      name: 'ask',
      run: async (_, inputs: number[]) => [{ value: inputs[0] as number }],
    })
    const results = await Promise.allSettled([1, 2].map((n) => ask(APP, n)))
    expect(codeOf(results[0] as PromiseSettledResult<unknown>)).toBe(1)
    expect(results[1]?.status).toBe('rejected')
  })
})

describe('lanes', () => {
  /** Statements that end when they are told to. */
  function held() {
    const running: { app: string; size: number; end: () => void }[] = []
    const operation = {
      name: 'held',
      run: (app: string, inputs: number[]) =>
        new Promise<MergeOutcome<number>[]>((resolve) => {
          running.push({ app, size: inputs.length, end: () => resolve(inputs.map((value) => ({ value }))) })
        }),
    }
    return { running, operation }
  }
  const turn = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))

  test('while the statement of an app runs, its requests gather, and another app is not held up', async () => {
    const { running, operation } = held()
    const submit = createMerger({ slots: 3 }).merged(operation)
    const first = submit('a', 1)
    await turn()
    const gathered = [submit('a', 2), submit('a', 3), submit('a', 4)]
    const other = submit('b', 5)
    await turn()
    expect(running.map(({ app, size }) => [app, size])).toEqual([
      ['a', 1],
      ['b', 1],
    ])
    running[1]?.end()
    expect(await other).toBe(5)
    running[0]?.end()
    expect(await first).toBe(1)
    await turn()
    expect(running.at(-1)).toMatchObject({ app: 'a', size: 3 })
    running.at(-1)?.end()
    expect(await Promise.all(gathered)).toEqual([2, 3, 4])
  })

  test('an operation may run several statements of one app at once, up to the slots of all', async () => {
    const { running, operation } = held()
    const submit = createMerger({ slots: 2 }).merged({ ...operation, parallel: 3 })
    const asked = []
    for (let i = 0; i < 4; i++) {
      asked.push(submit('a', i))
      await turn()
    }
    expect(running).toHaveLength(2)
    for (let i = 0; i < 4; i++) {
      running[i]?.end()
      await turn()
    }
    expect(await Promise.all(asked)).toEqual([0, 1, 2, 3])
  })
})
