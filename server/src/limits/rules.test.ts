import { describe, expect, test } from 'vitest'
import { counterKey, hasRule, type LimitPlan, type Profile, windowFor } from './rules.ts'

const allowed = (rule: string, { plan = 'free' as LimitPlan, overrides = {}, profile = 'spec' as Profile } = {}) => {
  const { limit, windowMs } = windowFor(rule, plan, overrides, profile)
  return `${limit} in ${windowMs / 1000} s`
}
const key = (rule: string, counter: string, subject?: string) =>
  counterKey({ rule, counter, ...(subject !== undefined && { subject }) })

describe('to the letter', () => {
  test('messages: free plans 150 requests/second/app, paid plans 6,000', () => {
    expect(allowed('messages')).toBe('150 in 1 s')
    expect(allowed('messages', { plan: 'paid' })).toBe('6000 in 1 s')
  })

  test('message create and cancel share a counter, whatever the endpoint', () => {
    expect(key('messages', 'createMessage')).toBe(key('messages', 'cancelMessage'))
  })

  test('custom events: own rate limit, separate from messages', () => {
    expect(allowed('events')).toBe('150 in 1 s')
    expect(allowed('events', { plan: 'paid' })).toBe('6000 in 1 s')
    expect(key('events', 'createEvents')).not.toBe(key('messages', 'createEvents'))
  })

  test('create, update, delete users or subscriptions: 1,000 requests/second/app, per endpoint', () => {
    expect(allowed('users.write')).toBe('1000 in 1 s')
    expect(allowed('users.write', { plan: 'paid' })).toBe('1000 in 1 s')
    expect(key('users.write', 'createUser')).not.toBe(key('users.write', 'updateUser'))
  })

  test('1 request/second per user or subscription, per endpoint', () => {
    expect(allowed('users.one')).toBe('1 in 1 s')
    expect(key('users.one', 'updateUser', 'a')).not.toBe(key('users.one', 'updateUser', 'b'))
    expect(key('users.one', 'updateUser', 'a')).not.toBe(key('users.one', 'deleteUser', 'a'))
    expect(() => key('users.one', 'updateUser')).toThrow('given none')
  })

  test('view endpoints: 1 request/second/app, per endpoint; up to 10 look-back requests/second, counted apart', () => {
    expect(allowed('view')).toBe('1 in 1 s')
    expect(allowed('lookback')).toBe('10 in 1 s')
    expect(key('view', 'viewTemplates')).not.toBe(key('view', 'viewMessages'))
    expect(key('view', 'viewTemplates')).not.toBe(key('lookback', 'viewTemplates'))
  })

  test('other writes 1,000 and other reads 100 requests/second/app', () => {
    expect(allowed('write')).toBe('1000 in 1 s')
    expect(allowed('read')).toBe('100 in 1 s')
  })
})

test('by default the two limits of 1 request/second, and only they, are averaged over a minute', () => {
  const all = ['messages', 'events', 'outcomes', 'users.write', 'users.one', 'view', 'lookback', 'write', 'read']
  expect(all.every(hasRule)).toBe(true)
  const averaged = all.filter((rule) => allowed(rule, { profile: 'default' }) !== allowed(rule))
  expect(averaged).toEqual(['users.one', 'view'])
  expect(allowed('view', { profile: 'default' })).toBe('60 in 60 s')
})

test('off means no limit', () => {
  expect(allowed('view', { profile: 'off' })).toBe('Infinity in 1 s')
})

test('an override is in requests per second, also where the limit is averaged', () => {
  const overrides = { 'users.write': 50, view: 2, 'users.one': 0.5, lookback: 0.001, read: 0 }
  expect(allowed('users.write', { overrides })).toBe('50 in 1 s')
  expect(allowed('view', { overrides })).toBe('2 in 1 s')
  expect(allowed('view', { overrides, profile: 'default' })).toBe('120 in 60 s')
  expect(allowed('users.one', { overrides })).toBe('1 in 2 s')
  expect(allowed('users.one', { overrides, profile: 'default' })).toBe('30 in 60 s')
  expect(allowed('lookback', { overrides })).toBe('1 in 60 s')
  expect(allowed('read', { overrides })).toBe('0 in 1 s')
  expect(allowed('messages', { overrides: { messages: -1 } })).toBe('150 in 1 s')
})

test('a subject that the database cannot hold still has a counter of its own', () => {
  const long = (end: string) => key('users.one', 'updateUser', 'x'.repeat(5_000) + end)
  expect(long('a')).not.toBe(long('b'))
  expect(long('a').length).toBeLessThan(300)
  expect(key('users.one', 'updateUser', '\0')).not.toContain('\0')
})

test('an unknown limit is a mistake of ours, never unlimited', () => {
  expect(hasRule('nothing')).toBe(false)
  expect(() => allowed('nothing')).toThrow('no limit named nothing')
  expect(() => key('nothing', 'x')).toThrow('no limit named nothing')
})
