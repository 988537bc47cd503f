import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { carillon, type RunningServer, startServer } from '../../test/command-line.ts'
import { readConfig } from '../settings/config.ts'

const LAUNCHER = fileURLToPath(new URL('../../run.mjs', import.meta.url))

/** Comes back when it has said where it is. */
async function startSink(...args: string[]) {
  const child = spawn(process.execPath, [LAUNCHER, 'cli/main', 'sink', ...args], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const ended = once(child, 'exit')
  const stop = async () => {
    child.kill('SIGTERM')
    const [code] = await ended
    return code as number
  }
  onTestFinished(async () => void (await stop()))
  const [text] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string]
  return { text, stop }
}

describe('carillon sink', () => {
  test('says where everything is, and stays until it is told to stop', async () => {
    const sink = await startSink('--json')
    const { control, settings, receivers, smtp, twilio } = JSON.parse(sink.text)
    expect(await (await fetch(`${control}/deliveries`)).json()).toEqual([])
    expect(Object.keys(receivers)).toEqual([
      ...['apns', 'fcm', 'huawei', 'adm', 'wns', 'web_push', 'twilio', 'webhook', 'smpp', 'smtp'],
    ])
    expect(smtp).toBe(receivers.smtp)
    expect(twilio).toEqual({
      account_sid: expect.any(String),
      auth_token: expect.any(String),
      from: expect.any(String),
    })
    expect(readConfig(settings).config.providers.route).toMatchObject({
      ca: expect.stringContaining('BEGIN CERTIFICATE'),
      connect: { 'https://*': { host: '127.0.0.1' } },
    })
    expect(await sink.stop()).toBe(143)
  })

  test('prints lines that a shell reads as the same settings', async () => {
    const { text } = await startSink()
    const folder = await mkdtemp(join(tmpdir(), 'carillon-env-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    await writeFile(join(folder, 'sink.env'), text)
    const script = `. "$0"; printf '%s\\0' "$PROVIDER_CA" "$PROVIDER_CONNECT" "$SMTP_URL"`
    const read = execFileSync('sh', ['-c', script, join(folder, 'sink.env')], { encoding: 'utf8' })
    const [PROVIDER_CA = '', PROVIDER_CONNECT = '', SMTP_URL = ''] = read.split('\0')
    const { route, email: mail } = readConfig({ PROVIDER_CA, PROVIDER_CONNECT, SMTP_URL }).config.providers
    expect(route).toMatchObject({
      ca: expect.stringContaining('BEGIN CERTIFICATE'),
      connect: { 'https://*': { host: '127.0.0.1' }, 'smpp://*': { host: '127.0.0.1' } },
    })
    expect(mail.route).toMatchObject({ host: '127.0.0.1', isCatcher: true })
  })

  test('takes ports in a row, and says so when one is taken', async () => {
    const sink = await startSink('--json', '--port-base', '27610')
    const { control, receivers } = JSON.parse(sink.text)
    expect([control, receivers.apns, receivers.smpp, receivers.smtp].map((url) => new URL(url).port)).toEqual([
      '27610',
      '27611',
      '27612',
      '27613',
    ])
    expect(await carillon(['sink', '--port-base', '27611'])).toMatchObject({ code: 1, out: '' })
    expect(await carillon(['sink', '--port-base', '65533'])).toMatchObject({ code: 2 })
  })
})

describe('a server with the stand-ins beside it', () => {
  let folder: string
  let server: RunningServer
  let keys: Record<'organization_id' | 'organization_key' | 'app_id' | 'app_key', string>
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'carillon-sink-'))
    server = await startServer({ DATA_DIR: join(folder, 'data'), SINK: 'true' })
    keys = JSON.parse(await readFile(join(folder, 'data', 'first-keys.json'), 'utf8'))
  })
  afterAll(async () => {
    await server.stop()
    await rm(folder, { recursive: true })
  })

  const ask = async (path: string, body?: unknown, as = { authorization: `Key ${keys.organization_key}` }) => {
    const response = await fetch(`${server.url}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { ...as, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return response.json()
  }

  test('says that nothing leaves the machine, and where to look', async () => {
    const said = server.lines.filter((line) => line.startsWith('Nothing leaves this machine'))
    expect(said).toHaveLength(1)
    const [address = ''] = /http:\S+/.exec(said[0] ?? '') ?? []
    expect(await (await fetch(address)).json()).toEqual([])
  })

  test('configures the first app, one made over HTTP and one made by the command line', async () => {
    const made = (await ask('/apps', { name: 'Second', organization_id: keys.organization_id })) as { id: string }
    const env = { DATA_DIR: join(folder, 'data'), SINK: 'true' }
    const third = await carillon(['app', 'create', '--org', keys.organization_id, '--name', 'Third', '--json'], env)
    for (const id of [keys.app_id, made.id, JSON.parse(third.out).app_id]) {
      expect(await ask(`/apps/${id}/sms_settings`)).toMatchObject({ kind: 'twilio', from: '+15005550006' })
      expect(await ask(`/apps/${id}`)).toMatchObject({
        apns_key_id: 'SINKKEY001',
        apns_team_id: 'SINKTEAM01',
        apns_bundle_id: 'com.example.sink',
        fcm_v1_service_account_json: expect.stringMatching(/./),
      })
    }
  })

  test('brings what is sent to the stand-ins, texts as well', async () => {
    const asApp = { authorization: `Key ${keys.app_key}` }
    const phone = { type: 'SMS', token: '+15005550001' }
    await ask(
      `/apps/${keys.app_id}/users`,
      {
        identity: { external_id: 'you' },
        subscriptions: [{ type: 'AndroidPush', token: 'any-token' }, phone],
      },
      asApp,
    )
    for (const [target_channel, more] of Object.entries({ push: {}, sms: { name: 'A text' } }))
      await ask(
        '/notifications',
        {
          app_id: keys.app_id,
          include_aliases: { external_id: ['you'] },
          target_channel,
          contents: { en: `By ${target_channel}` },
          ...more,
        },
        asApp,
      )
    const line = server.lines.find((it) => it.startsWith('Nothing leaves this machine')) ?? ''
    const [address = ''] = /http:\S+/.exec(line) ?? []
    const arrived = async () => (await fetch(address)).json() as Promise<{ channel: string }[]>
    await expect.poll(async () => (await arrived()).map(({ channel }) => channel).sort()).toEqual(['fcm', 'sms'])
    expect(await arrived()).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ channel: 'fcm', to: 'any-token', text: 'By push' }),
        expect.objectContaining({ channel: 'sms', to: phone.token, text: 'By sms' }),
      ]),
    )
  })
})
