import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { certificateFor } from '../sink/certificate.ts'
import { ConfigError, readConfig } from './config.ts'

const providersWith = (env: Record<string, string>) => readConfig(env).config.providers
const { cert } = certificateFor('api.push.apple.com')

test('without settings everything is where it really is', () => {
  expect(providersWith({})).toEqual({
    route: {},
    outbound: { route: {}, allowHttp: false },
    email: { helo: 'localhost.localdomain' },
    twilioUrl: 'https://api.twilio.com',
    vapidSubject: 'mailto:admin@carillon.invalid',
  })
})

test('certificates come from a file, as they are, or in one line', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'carillon-ca-'))
  const file = join(folder, 'ca.pem')
  await writeFile(file, `# ours\n${cert.replaceAll('\r', '')}${cert.replaceAll('\r', '')}`)
  const once = providersWith({ PROVIDER_CA: cert }).route.ca as string
  expect(once.match(/BEGIN CERTIFICATE/g)).toHaveLength(1)
  expect(providersWith({ PROVIDER_CA: cert.replaceAll('\r', '').replaceAll('\n', '\\n') }).route.ca).toBe(
    once.replaceAll('\r', ''),
  )
  expect(providersWith({ PROVIDER_CA: file }).route.ca?.match(/BEGIN CERTIFICATE/g)).toHaveLength(2)
  await rm(folder, { recursive: true })
})

test('connections are led elsewhere by origin, as channels write it', () => {
  const text =
    'https://API.push.apple.com:443=127.0.0.1:7001, https://*=[::1]:7002,smpp://smsc.example:2775=sink.local:1'
  expect(providersWith({ PROVIDER_CONNECT: text }).route.connect).toEqual({
    'https://api.push.apple.com': { host: '127.0.0.1', port: 7001 },
    'https://*': { host: '::1', port: 7002 },
    'smpp://smsc.example:2775': { host: 'sink.local', port: 1 },
  })
})

test('networks are for the guarded client, and http only there', () => {
  const env = { OUTBOUND_ALLOW: '10.1.0.0/16, ::1', OUTBOUND_ALLOW_HTTP: 'true', TWILIO_URL: 'http://10.1.0.5' }
  expect(providersWith(env)).toMatchObject({
    outbound: { allow: ['10.1.0.0/16', '::1'], allowHttp: 'inside' },
    twilioUrl: 'http://10.1.0.5',
  })
})

test('the subject of web push is who was named, else the public address', () => {
  const secure = { PUBLIC_URL: 'https://push.example.com' }
  expect(providersWith(secure).vapidSubject).toBe('https://push.example.com')
  expect(providersWith({ PUBLIC_URL: 'http://push.example.com' }).vapidSubject).toMatch(/^mailto:/)
  expect(providersWith({ ...secure, VAPID_SUBJECT: 'mailto:you@example.com' }).vapidSubject).toBe(
    'mailto:you@example.com',
  )
})

test.each([
  ['PROVIDER_CA', '/no/such/file.pem'],
  ['PROVIDER_CA', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----'],
  ['PROVIDER_CA', '-----BEGIN PRIVATE KEY-----'],
  ['PROVIDER_CONNECT', 'https://api.push.apple.com'],
  ['PROVIDER_CONNECT', 'https://api.push.apple.com=127.0.0.1'],
  ['PROVIDER_CONNECT', 'https://api.push.apple.com=127.0.0.1:70000'],
  ['PROVIDER_CONNECT', 'api.push.apple.com=127.0.0.1:1'],
  ['PROVIDER_CONNECT', '*=127.0.0.1:1'],
  ['PROVIDER_CONNECT', 'https://a.example/path=127.0.0.1:1'],
  ['PROVIDER_CONNECT', 'https://[=127.0.0.1:1'],
  ['OUTBOUND_ALLOW', '10.1.0.0/99'],
  ['OUTBOUND_ALLOW', 'localhost'],
  ['OUTBOUND_ALLOW_HTTP', 'maybe'],
  ['TWILIO_URL', 'ftp://a.example'],
  ['VAPID_SUBJECT', 'you@example.com'],
  ['MAIL_LISTEN', '25'],
  ['MAIL_LISTEN', '0.0.0.0'],
  ['MAIL_LISTEN', '0.0.0.0:70000'],
  ['MAIL_LISTEN', ':25'],
])('%s that cannot be read is told by its name: %j', (name, text) => {
  expect(() => readConfig({ [name]: text })).toThrow(ConfigError)
  expect(() => readConfig({ [name]: text })).toThrow(new RegExp(`^${name} must `))
})

test('MAIL_LISTEN is a host and a port', () => {
  const read = (text: string) => readConfig({ MAIL_LISTEN: text }).config.mailListen
  expect(read('')).toBeUndefined()
  expect(read('0.0.0.0:25')).toEqual({ host: '0.0.0.0', port: 25 })
  expect(read('mail.example:2525')).toEqual({ host: 'mail.example', port: 2525 })
  expect(read('[::]:25')).toEqual({ host: '::', port: 25 })
})

describe('a switch', () => {
  const sinkOf = (...args: string[]) => readConfig({}, args)
  test('needs no value, and takes one', () => {
    expect(sinkOf('--sink').config.sink).toBe(true)
    expect(sinkOf('--sink', '--port', '5').config).toMatchObject({ sink: true, port: 5 })
    expect(sinkOf('--sink', 'false').config.sink).toBe(false)
    expect(sinkOf('--sink=on').config.sink).toBe(true)
    expect(readConfig({ SINK: 'true' }, ['--sink=no']).config.sink).toBe(false)
    expect(() => sinkOf('--sink=maybe')).toThrow('--sink must be true or false')
  })
  test('leaves alone what comes after it', () => {
    expect(sinkOf('--sink', 'app', 'list')).toMatchObject({ config: { sink: true }, rest: ['app', 'list'] })
  })
})
