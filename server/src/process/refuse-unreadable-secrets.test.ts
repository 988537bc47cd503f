import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestApp, testApp } from '../../test/app.ts'
import { createLog, type Log } from '../lib/log.ts'
import { secretBox } from '../lib/secrets.ts'
import { sql } from '../storage/sql.ts'
import { refuseUnreadableSecrets } from './refuse-unreadable-secrets.ts'

const NOW = new Date('2030-01-01T09:00:00Z')
const KEY = 'the key that it was written with'
const OTHER = 'another key, of another server'

let app: TestApp
let dataDir: string
beforeAll(async () => {
  app = await testApp({ secretKey: KEY })
  dataDir = await mkdtemp(join(tmpdir(), 'carillon-secrets-'))
})
afterAll(async () => {
  await app.close()
  await rm(dataDir, { recursive: true })
})

const start = (secretKey: string | undefined, allowUnreadableSecrets = false, log: Log = createLog('silent')) =>
  refuseUnreadableSecrets(app.db, { secretKey, dataDir, allowUnreadableSecrets }, NOW, log)
const WAY_OUT =
  'give the key that it was written with (SECRET_KEY=new,old beside a new one), or, if that is lost, start with --allow-unreadable-secrets and set them again'

/** What one row holds, sealed with the key of the server. */
const sealed = () => secretBox(KEY).seal('a secret', 'its place')
const ID = '7d0e6c5e-1f0b-4c52-9a53-2b1c2c9b4e0f'

const kinds: [name: string, set: () => ReturnType<typeof sql>, clear: () => ReturnType<typeof sql>][] = [
  [
    'apns_p8',
    () => sql`update apps set credentials = ${JSON.stringify({ apns_p8: sealed() })} where id = ${app.tenant.id}`,
    () => sql`update apps set credentials = '{}' where id = ${app.tenant.id}`,
  ],
  [
    'secret for events of ses',
    () => sql`insert into email_event_sources (app_id, source, settings, secret, updated_at)
      values (${app.tenant.id}, 'ses', '{}', ${sealed()}, ${NOW})`,
    () => sql`delete from email_event_sources where app_id = ${app.tenant.id}`,
  ],
  [
    `webhook secret of administrator ${ID}`,
    () => sql`insert into app_administrators (app_id, id, webhook_url, webhook_secret, created_at)
      values (${app.tenant.id}, ${ID}, 'https://example.com', ${sealed()}, ${NOW})`,
    () => sql`delete from app_administrators where app_id = ${app.tenant.id}`,
  ],
  [
    'DKIM key of example.com',
    () => sql`insert into email_domains (app_id, domain, state, dkim_keys, created_at, updated_at)
      values (${app.tenant.id}, 'example.com', 'pending', ${JSON.stringify([{ sealed: sealed() }])}, ${NOW}, ${NOW})`,
    () => sql`delete from email_domains where app_id = ${app.tenant.id}`,
  ],
  [
    `secret of journey webhook ${ID}`,
    () => sql`insert into journey_webhooks (app_id, id, name, url, secret, created_at, updated_at)
      values (${app.tenant.id}, ${ID}, 'x', 'https://example.com', ${sealed()}, ${NOW}, ${NOW})`,
    () => sql`delete from journey_webhooks where app_id = ${app.tenant.id}`,
  ],
]

test.each(kinds)('%s that does not open with the key is refused by name', async (name, set, clear) => {
  await app.db.query(set())
  await expect(start(OTHER)).rejects.toThrow(`SECRET_KEY does not open the ${name} of app ${app.tenant.id}; ${WAY_OUT}`)
  await start(KEY)
  await start(`${OTHER},${KEY}`)
  await app.db.query(clear())
  await start(OTHER)
})

test('the secret that a webhook had before counts for as long as it is used', async () => {
  const until = new Date('2030-01-02T09:00:00Z')
  await app.db.query(sql`
    insert into event_webhooks
      (app_id, id, url, kinds, secret, previous_secret, previous_until, created_at, updated_at)
    values (${app.tenant.id}, ${ID}, 'https://example.com', '{sent}', ${secretBox(OTHER).seal('new', 'its place')},
      ${sealed()}, ${until}, ${NOW}, ${NOW})`)
  const at = (now: Date) =>
    refuseUnreadableSecrets(
      app.db,
      { secretKey: OTHER, dataDir, allowUnreadableSecrets: false },
      now,
      createLog('silent'),
    )
  await expect(at(NOW)).rejects.toThrow(`SECRET_KEY does not open the secret of event webhook ${ID}`)
  await at(until)
  await app.db.query(sql`delete from event_webhooks where app_id = ${app.tenant.id}`)
})

test('what the interface made is found as well, and the rest is counted', async () => {
  const headers = { authorization: `Key ${app.tenant.organizationKey}` }
  expect((await app.request(`/apps/${app.tenant.id}`, { headers })).body.chrome_web_key).toBeTypeOf('string')
  await app.app('/event_webhooks', { headers, body: { url: 'https://example.com/hook', kinds: ['sent'] } })
  await expect(start(OTHER)).rejects.toThrow(/^SECRET_KEY does not open the .+ of app .+ and 1 more; give the key/)
  await start(KEY)
})

test('a key that is missing is not made, and one in a file is named', async () => {
  await expect(start(undefined)).rejects.toThrow(`${dataDir}/secret-key is missing, and the database holds the `)
  expect(await readdir(dataDir)).toEqual([])
  await writeFile(join(dataDir, 'secret-key'), OTHER)
  await expect(start(undefined)).rejects.toThrow(`${dataDir}/secret-key does not open the `)
  await writeFile(join(dataDir, 'secret-key'), KEY)
  await start(undefined)
})

test('whoever lost the key may start all the same, and is warned', async () => {
  const warnings: unknown[] = []
  const log = { ...createLog('silent'), warn: (text: unknown) => warnings.push(text) } as unknown as Log
  await start(OTHER, true, log)
  expect(warnings).toEqual([expect.stringMatching(/^cannot read the .+ and 1 more: written with another SECRET_KEY/)])
})
