import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { carillon, urlOf } from '../../test/command-line.ts'
import { aDomain, metricsOf } from '../../test/email-events.ts'
import { systemClock } from '../lib/clock.ts'
import { readLines } from './read-lines.ts'
import { runCarillon } from './run.ts'

let app: TestApp
let folder: string
let env: Record<string, string>
beforeAll(async () => {
  app = await testApp()
  folder = await mkdtemp(join(tmpdir(), 'carillon-cli-'))
  env = { DATABASE_URL: urlOf(app.connection), DATA_DIR: folder }
})
afterAll(async () => {
  await app.close()
  await rm(folder, { recursive: true })
})

const now = systemClock().now().getTime()
const ago = (hours: number) => new Date(now - hours * 3_600_000).toISOString()
const line = (domain: string, more: object = {}) =>
  JSON.stringify({ app_id: app.tenant.id, domain, event: 'sent', recipient: 'ann@gmail.com', at: ago(1), ...more })

async function run(args: string[], pieces: readonly (string | Uint8Array)[], settings: Record<string, string> = {}) {
  const warnings: string[] = []
  async function* input() {
    yield* pieces
  }
  const printed = await runCarillon(
    ['email-events', 'load', ...args],
    { ...env, ...settings },
    {
      input: input(),
      warn: (text) => warnings.push(text),
    },
  )
  return { ...printed, warnings }
}
const counts = (domain: string) => metricsOf(app, domain, ago(24), ago(0))

describe('email-events load', () => {
  test('as an operator runs it: lines in, counts in the answers of a server that runs, bad lines told', async () => {
    const domain = aDomain()
    const input = [line(domain), '{', line(domain, { event: 'opened' }), line(domain, { at: 'now' }), ''].join('\n')
    expect(await carillon(['email-events', 'load'], env, input)).toEqual({
      code: 1,
      out: '2 lines loaded, 2 refused.\n',
      err: 'line 2: is not JSON\nline 4: at must be a date-time of RFC 3339, as 2030-01-31T09:30:00Z\n',
    })
    expect(await counts(domain)).toEqual({ gmail: { sent: 1, opened: 1, unique_opened: 1 } })
  })

  test('takes lines however they are cut into pieces, and without an end to the last', async () => {
    const domain = aDomain()
    const bytes = Buffer.from([line(domain, { recipient: 'jürgen@gmail.com' }), line(domain)].join('\r\n'))
    const pieces = Array.from({ length: Math.ceil(bytes.length / 7) }, (_, n) => bytes.subarray(n * 7, n * 7 + 7))
    expect(await run(['--json'], pieces)).toEqual({ code: 0, out: '{"loaded":2,"refused":0}', err: '', warnings: [] })
    expect(await counts(domain)).toEqual({ gmail: { sent: 2 } })
  })

  test('of nothing loads nothing', async () => {
    expect(await run([], [])).toMatchObject({ code: 0, out: '0 lines loaded, 0 refused.' })
  })

  test('goes on from a line', async () => {
    const domain = aDomain()
    const lines = ['no JSON', line(domain), line(domain)].join('\n')
    expect(await run(['--from', '3'], [lines])).toMatchObject({
      code: 0,
      out: '1 line loaded, 0 refused.',
      warnings: [],
    })
    expect(await run(['--from', '0'], [lines])).toMatchObject({
      code: 2,
      err: expect.stringContaining('--from must be the number of a line'),
    })
  })

  test('classifies by names of the operator', async () => {
    const domain = aDomain()
    const file = join(folder, 'providers.json')
    await writeFile(file, JSON.stringify({ providers: { rackspace: { domains: ['gmail.com'] } } }))
    await run([], [line(domain)], { INBOX_PROVIDERS: file })
    expect(await counts(domain)).toEqual({ rackspace: { sent: 1 } })
  })

  test.each([
    ['{"providers": {"hotmail": {}}}', '"hotmail" is none of apple, '],
    ['{"providers": ', 'it is not JSON'],
    [undefined, 'it cannot be read'],
  ])('says in one line what is wrong with INBOX_PROVIDERS: %s', async (content, reason) => {
    const file = join(folder, 'wrong.json')
    await rm(file, { force: true })
    if (content !== undefined) await writeFile(file, content)
    const { code, err } = await run([], [], { INBOX_PROVIDERS: file })
    expect(code).toBe(2)
    expect(err).toContain(`carillon: INBOX_PROVIDERS cannot be read from ${file}: ${reason}`)
    expect(err).not.toContain('\n')
  })
})

test('a line without end does not fill the memory', async () => {
  async function* endless() {
    for (let n = 0; n < 50; n++) yield 'x'.repeat(100_000)
    yield '\nlast'
  }
  const lengths: number[] = []
  for await (const text of readLines(endless())) lengths.push(text.length)
  expect(lengths).toEqual([1_000_000, 4])
})
