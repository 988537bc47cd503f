import { expect, test } from 'vitest'
import { ConfigError, readConfig } from './config.ts'

const mailWith = (env: Record<string, string>) => readConfig(env).config.providers.email

test('without settings mail is caught, and nobody has a name', () => {
  expect(mailWith({})).toEqual({ route: undefined, helo: 'localhost.localdomain', resolver: undefined })
})

test.each([
  [
    'smtp://user%40x:p%3Ass@smtp.example.com',
    { host: 'smtp.example.com', port: 587, tls: 'starttls', auth: { user: 'user@x', password: 'p:ss' } },
  ],
  ['smtps://u:p@smtp.example.com', { port: 465, tls: 'implicit' }],
  ['smtp://127.0.0.1:1025?catcher=true', { port: 1025, tls: 'opportunistic', auth: undefined, isCatcher: true }],
  ['smtp://[::1]:2525?tls=none&pool=20&rate=50', { host: '::1', tls: 'none', connections: 20, perSecond: 50 }],
])('SMTP_URL=%s is a relay', (text, expected) => {
  expect(mailWith({ SMTP_URL: text }).route).toMatchObject({ connections: 10, isCatcher: false, ...expected })
})

test('SMTP_URL=direct: sends directly', () => {
  expect(mailWith({ SMTP_URL: 'direct:' }).route).toBe('direct')
})

test.each([
  ['https://bell.example', undefined, 'bell.example'],
  ['https://bell.example', 'Mail.Bell.example', 'mail.bell.example'],
  ['http://127.0.0.1:3000', undefined, 'localhost.localdomain'],
  ['http://localhost:3000', undefined, 'localhost.localdomain'],
])('PUBLIC_URL=%s and MAIL_HELO=%s greet as %s', (PUBLIC_URL, MAIL_HELO, helo) => {
  expect(mailWith({ PUBLIC_URL, ...(MAIL_HELO && { MAIL_HELO }) }).helo).toBe(helo)
})

test.each([
  ['127.0.0.1', '127.0.0.1:53'],
  ['127.0.0.1:5353', '127.0.0.1:5353'],
  ['[::1]:5353', '[::1]:5353'],
  ['::1', '[::1]:53'],
])('RESOLVER=%s is %s', (text, resolver) => {
  expect(mailWith({ RESOLVER: text }).resolver).toBe(resolver)
})

test.each([
  ['SMTP_URL', 'https://smtp.example.com'],
  ['SMTP_URL', 'smtp://'],
  ['SMTP_URL', 'smtp.example.com'],
  ['SMTP_URL', 'smtp://h.example?pool=0'],
  ['SMTP_URL', 'smtp://h.example?speed=9'],
  ['SMTP_URL', 'smtp://h.example?tls=maybe'],
  ['SMTP_URL', 'smtp://u:%@h.example'],
  ['MAIL_HELO', 'mail'],
  ['MAIL_HELO', '127.0.0.1'],
  ['RESOLVER', 'dns.example.com'],
  ['RESOLVER', '127.0.0.1:70000'],
])('%s=%s is refused by its name, without what may be secret', (name, text) => {
  expect(() => mailWith({ [name]: text })).toThrow(ConfigError)
  expect(() => mailWith({ [name]: text })).toThrow(new RegExp(`^${name} `))
})
