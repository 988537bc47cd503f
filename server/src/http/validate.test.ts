import Type from 'typebox'
import { describe, expect, test } from 'vitest'
import { AppError } from '../lib/errors.ts'
import { compileValidator, createCompilers } from './validate.ts'

const compilers = createCompilers()

const Body = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 5 }),
  plan: Type.Optional(Type.Union([Type.Literal('free'), Type.Literal('paid')])),
  note: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  nullable: Type.Optional(Type.Unsafe<string | null>({ type: ['string', 'null'] })),
  count: Type.Optional(Type.Integer({ minimum: 0, maximum: 10 })),
  on: Type.Optional(Type.Boolean()),
  id: Type.Optional(Type.String({ format: 'uuid' })),
  at: Type.Optional(Type.String({ format: 'date-time' })),
  subscriptions: Type.Optional(
    Type.Array(Type.Object({ type: Type.String(), token: Type.Optional(Type.String()) }), { maxItems: 2 }),
  ),
  target: Type.Optional(
    Type.Union([
      Type.Object({ kind: Type.Literal('a'), size: Type.Integer() }),
      Type.Object({ list: Type.Array(Type.String()) }),
    ]),
  ),
  tags: Type.Optional(Type.Record(Type.String(), Type.String())),
})

function problems(value: unknown, size = 100): string[] {
  try {
    compileValidator(compilers, 'body', Body, true)?.(value, size)
    return []
  } catch (error) {
    expect(error).toBeInstanceOf(AppError)
    return (error as AppError).problems.map(({ title }) => title)
  }
}

describe('problems are told in the words of the interface', () => {
  test.each<[unknown, string[]]>([
    [{ name: 'ada' }, []],
    [{ name: 'ada', more: true }, []],
    [undefined, ['The body must be an object']],
    [null, ['The body must be an object']],
    [[], ['The body must be an object']],
    [{}, ['name is required']],
    [{ name: 5 }, ['name must be a string']],
    [{ name: '' }, ['name must not be empty']],
    [{ name: 'abcdef' }, ['name must have at most 5 characters']],
    [{ name: '😀😀😀😀😀' }, []],
    [{ name: 'a', plan: 'gold' }, ['plan must be "free" or "paid"']],
    [{ name: 'a', note: 5 }, ['note must be a string or null']],
    [{ name: 'a', nullable: 5 }, ['nullable must be a string or null']],
    [{ name: 'a', count: 1.5 }, ['count must be an integer']],
    [{ name: 'a', count: '1' }, ['count must be an integer']],
    [{ name: 'a', count: -1 }, ['count must be at least 0']],
    [{ name: 'a', count: 11 }, ['count must be at most 10']],
    [{ name: 'a', on: 'true' }, ['on must be true or false']],
    [{ name: 'a', id: 'x' }, ['id must be a UUID']],
    [{ name: 'a', id: 'urn:uuid:5424c1a5-e251-463d-8ce0-9a9942c88e9e' }, ['id must be a UUID']],
    [{ name: 'a', id: '5424C1A5-e251-463d-8ce0-9a9942c88e9e' }, []],
    [{ name: 'a', at: '2030-01-01T00:00:00+05:30' }, []],
    [{ name: 'a', at: '2030-01-01T00:00:00+05' }, ['at must be an ISO 8601 date and time']],
    [{ name: 'a', at: '2016-12-31T23:59:60Z' }, ['at must be an ISO 8601 date and time']],
    [{ name: 'a', subscriptions: {} }, ['subscriptions must be a list']],
    [{ name: 'a', subscriptions: [{ type: 5 }] }, ['subscriptions[0].type must be a string']],
    [{ name: 'a', subscriptions: [{ type: 'x' }, {}] }, ['subscriptions[1].type is required']],
    [{ name: 'a', subscriptions: [1, 1, 1] }.subscriptions, ['The body must be an object']],
    [{ name: 'a', tags: { 'a/b~c': 1 } }, ['tags.a/b~c must be a string']],
    [{ name: 'a', target: { list: [5] } }, ['target.list[0] must be a string']],
    [{ name: 'a', target: 5 }, ['target must be an object']],
    [{ name: 5, count: 'x' }, ['name must be a string', 'count must be an integer']],
  ])('%j', (value, expected) => {
    expect(problems(value).sort()).toEqual([...expected].sort())
  })
})

test('at most 20 problems are listed, and one alone for a large body', () => {
  const value = { name: 'a', tags: Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`t${i}`, i])) }
  expect(problems(value)).toHaveLength(20)
  expect(problems(value, 1_000_000)).toHaveLength(1)
})

test('a long name of a field is cut', () => {
  const [title = ''] = problems({ name: 'a', tags: { [`${'😀'.repeat(5_000)}`]: 1 } })
  expect(title.length).toBeLessThan(300)
  expect(title.isWellFormed()).toBe(true)
})
