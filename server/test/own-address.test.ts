// The server says where it is by its settings and by the address it listens on. What a caller writes into Host is no part of it.

import { readdir, readFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { reachableAddress } from '../src/lib/own-address.ts'
import { testApp } from './app.ts'

const SOURCE = join(import.meta.dirname, '../src')

/** As somebody asks who chooses every header. */
function askAs(headers: Record<string, string>, url: string, key: string): Promise<{ csv_file_url: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ csv_file_url: string }>()
  const asked = request(
    url,
    { method: 'POST', headers: { ...headers, authorization: `Key ${key}` } },
    async (response) => {
      const chunks = await response.toArray()
      resolve(JSON.parse(Buffer.concat(chunks).toString()))
    },
  )
  asked.on('error', reject).end()
  return promise
}

test.each([
  ['without PUBLIC_URL', undefined],
  ['with PUBLIC_URL', 'https://bell.example/'],
])('an export has the address of the server, whatever Host says: %s', async (_, publicUrl) => {
  const app = await testApp(publicUrl === undefined ? {} : { publicUrl })
  try {
    const base = publicUrl === undefined ? app.url : 'https://bell.example'
    const hosts = ['evil.example', 'evil.example:80', 'localhost', '127.0.0.1:1', '[::1]:9']
    for (const host of hosts) {
      const tenant = await app.anotherTenant()
      const headers = { host, 'x-forwarded-host': host, 'x-forwarded-proto': 'https', forwarded: `host=${host}` }
      const { csv_file_url } = await askAs(headers, `${app.url}/players/csv_export?app_id=${tenant.id}`, tenant.key)
      expect(csv_file_url.startsWith(`${base}/exports/${tenant.id}/`)).toBe(true)
    }
  } finally {
    await app.close()
  }
})

test('a server that listens everywhere is reached as localhost', () => {
  expect(reachableAddress('http://0.0.0.0:3000')).toBe('http://localhost:3000')
  expect(reachableAddress('http://[::]:3000')).toBe('http://localhost:3000')
  expect(reachableAddress('http://[::1]:3000')).toBe('http://[::1]:3000')
  expect(reachableAddress('http://192.0.2.1:80')).toBe('http://192.0.2.1:80')
})

test('nothing but the stand-ins of providers reads the Host of a request', async () => {
  const names = (await readdir(SOURCE, { recursive: true })).filter((name) => /(?<!\.test)\.ts$/.test(name))
  const sources = names.filter((name) => !name.startsWith('sink/'))
  expect(sources.length).toBeGreaterThan(300)
  const reading: string[] = []
  for (const name of sources)
    if (
      /headers\.host\b|\[['"]host['"]\]|header\(['"](host|forwarded|x-forwarded-(host|proto))['"]\)/i.test(
        await readFile(join(SOURCE, name), 'utf8'),
      )
    )
      reading.push(name)
  expect(reading).toEqual([])
})
