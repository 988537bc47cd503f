import { describe, expect, test } from 'vitest'
import { createRouter } from './router.ts'

const router = createRouter<string>()
router.add('GET', '/', 'root')
router.add('GET', '/players/:player_id', 'view')
router.add('PUT', '/players/:player_id', 'update')
router.add('POST', '/players/csv_export', 'export')
router.add('GET', '/apps/:app_id/users/by/:label/:value', 'user')
router.add('GET', '/apps/:app_id/users/:external_id/tags/:tag', 'tag')

const find = (method: string, path: string) => {
  const found = router.find(method, path)
  return found && [found.value, found.params]
}

describe('finds', () => {
  test.each([
    ['GET', '/', 'root', {}],
    ['GET', '/players/7', 'view', { player_id: '7' }],
    ['PUT', '/players/7', 'update', { player_id: '7' }],
    ['POST', '/players/csv_export', 'export', {}],
    // What is spelled out goes first, but does not shut the way of the parameter beside it.
    ['GET', '/players/csv_export', 'view', { player_id: 'csv_export' }],
    ['GET', '/apps/a/users/by/l/v', 'user', { app_id: 'a', label: 'l', value: 'v' }],
    ['GET', '/apps/a/users/by/tags/v', 'user', { app_id: 'a', label: 'tags', value: 'v' }],
    ['GET', '/apps/a/users/x/tags/v', 'tag', { app_id: 'a', external_id: 'x', tag: 'v' }],
    ['GET', '/players/a%2Fb', 'view', { player_id: 'a/b' }],
    ['GET', '/players/%252F', 'view', { player_id: '%2F' }],
    ['GET', '/%70layers/7', 'view', { player_id: '7' }],
    ['GET', '/players/__proto__', 'view', { player_id: '__proto__' }],
  ])('%s %s', (method, path, value, params) => {
    expect(find(method, path)).toEqual([value, params])
  })
})

test.each([
  ['GET', ''],
  ['GET', '/players'],
  ['GET', '/players/'],
  ['GET', '/players/7/'],
  ['GET', '//players/7'],
  ['DELETE', '/players/7'],
  ['GET', '/Players/7'],
  ['GET', '/apps//users/by/l/v'],
  ['GET', '/constructor/7'],
])('does not find %s %s', (method, path) => {
  expect(find(method, path)).toBeUndefined()
})

describe('normalizes', () => {
  test.each([
    ['/', '/'],
    ['//', '/'],
    ['/players/7', '/players/7'],
    ['/players/7/', '/players/7'],
    ['/players/', '/players'],
    ['//players/7', '/players/7'],
    ['///players////7//', '/players/7'],
    ['/players//7', '/players/7'],
    ['/players/a%2F%2Fb', '/players/a%2F%2Fb'],
    ['/nowhere//at/all', '/nowhere/at/all'],
  ])('%s', (path, normalized) => {
    expect(router.normalize(path)).toBe(normalized)
  })

  test.each([
    '/apps//users/by/l/v',
    '/apps/a/users/by//v',
    '/apps/a/users/by/l//',
    '//apps//users/by/l/v',
    '/apps/a/users///tags/v',
    '/apps////users/by/l/v',
  ])('not %s, which lacks a parameter', (path) => {
    const normalized = router.normalize(path)
    expect([normalized === path, find('GET', normalized)]).toEqual([path !== '/apps/a/users/by/l//', undefined])
  })

  test('nothing that is longer than any route, without looking for it', () => {
    const path = `/${'apps//'.repeat(2_000)}x`
    expect(router.normalize(path)).toBe(path)
  })
})

test.each(['/players/%zz', '/players/%ff', '/players/%'])('%s cannot be decoded', (path) => {
  expect(() => find('GET', path)).toThrow(URIError)
})
