import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { NOBODY } from '../../test/users.ts'

let app: TestApp
beforeAll(async () => {
  app = await testApp()
})
afterAll(() => app.close())

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(`${app.url}${path}`, { headers, redirect: 'manual' })

describe('the files of the web SDK', () => {
  test.each([
    ['/sdk/carillon.js', 'carillon.js', 'text/javascript'],
    ['/sdk/carillon-worker.js', 'carillon-worker.js', 'text/javascript'],
    ['/sdk/carillon.d.ts', 'carillon.d.ts', 'application/typescript'],
    ['/demo/demo.js', 'demo/demo.js', 'text/javascript'],
    ['/demo/demo.css', 'demo/demo.css', 'text/css'],
  ])('%s is served as it is, and not again to who has it', async (path, file, type) => {
    const response = await get(path)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe(`${type}; charset=utf-8`)
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    expect(await response.text()).toBe(await readFile(new URL(`../../../web-sdk/${file}`, import.meta.url), 'utf8'))
    const again = await get(path, { 'if-none-match': response.headers.get('etag') as string })
    expect([again.status, await again.text()]).toEqual([304, ''])
  })

  test.each(['/sdk/carillon.js', '/sdk/carillon-worker.js'])('%s may be used by sites of any origin', async (path) => {
    const { headers } = await get(path)
    expect(headers.get('access-control-allow-origin')).toBe('*')
    expect(headers.get('cross-origin-resource-policy')).toBe('cross-origin')
    expect(headers.get('cache-control')).toBe('public, max-age=300')
  })

  test.each([
    '/sdk/',
    '/sdk/carillon-worker.d.ts',
    '/sdk/..%2fpackage.json',
    '/demo/demo.html',
    '/demo/..%2f..%2fpackage.json',
  ])('nothing else is there: %s', async (path) => {
    expect((await get(path)).status).toBe(404)
  })
})

describe('the demo page', () => {
  test('runs nothing but files of this server', async () => {
    const response = await get(`/demo?app_id=${NOBODY}`)
    const page = await response.text()
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(response.headers.get('content-security-policy')).toContain("default-src 'none'; script-src 'self';")
    expect(page).not.toMatch(/<script>|<style|\son\w+=|\sstyle=|https?:/)
  })

  test('leads to the only app of the server, who asks from its own machine, and to none of several', async () => {
    const only = await get('/demo')
    expect([only.status, only.headers.get('location')]).toEqual([302, `/demo?app_id=${app.tenant.id}`])
    await app.anotherTenant()
    expect((await get('/demo')).status).toBe(200)
  })
})

test('who asks from elsewhere is not told of the only app', async () => {
  const behindProxy = await testApp({ trustProxy: true })
  try {
    const ask = (address: string) =>
      fetch(`${behindProxy.url}/demo`, { headers: { 'x-forwarded-for': address }, redirect: 'manual' })
    expect((await ask('127.0.0.1')).status).toBe(302)
    const response = await ask('192.0.2.7')
    expect(response.status).toBe(200)
    expect(await response.text()).not.toContain(behindProxy.tenant.id)
  } finally {
    await behindProxy.close()
  }
})
