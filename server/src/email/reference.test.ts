import fc from 'fast-check'
import { expect, test } from 'vitest'
import { newId } from '../lib/ids.ts'
import { createReferences, emailIdOf } from './reference.ts'

const references = createReferences('a secret of the tests')
const anEmail = () => ({
  appId: newId(),
  expandAt: new Date('2030-03-31T23:59:59.999Z'),
  messageId: newId(),
  subscriptionId: newId(),
  runId: '00000000-0000-0000-0000-000000000000',
})

test('it names the app, the month and the delivery', () => {
  const email = anEmail()
  expect(references.read(references.write(email))).toEqual({
    appId: email.appId,
    month: new Date('2030-03-01T00:00:00Z'),
    id: emailIdOf(email),
  })
})

test('it is read as it was written, whatever it names', () => {
  const emails = fc.record({
    appId: fc.uuid(),
    expandAt: fc.date({ min: new Date('2020-01-01'), max: new Date('2200-01-01'), noInvalidDate: true }),
    messageId: fc.uuid(),
    subscriptionId: fc.uuid(),
    runId: fc.uuid(),
  })
  fc.assert(
    fc.property(emails, (email) => {
      const { expandAt } = email
      expect(references.read(references.write(email))).toEqual({
        appId: email.appId,
        month: new Date(Date.UTC(expandAt.getUTCFullYear(), expandAt.getUTCMonth())),
        id: emailIdOf(email),
      })
    }),
  )
})

test('it survives a change of case, and fits an address', () => {
  const email = anEmail()
  const text = references.write(email)
  expect(text).toMatch(/^[a-z2-7]{55}$/)
  expect(`b-${text}`.length).toBeLessThanOrEqual(64)
  expect(references.read(text.toUpperCase())).toEqual(references.read(text))
})

test('one that was changed in any place is none', () => {
  const text = references.write(anEmail())
  for (let i = 0; i < text.length; i++) {
    const other = text[i] === 'a' ? 'b' : 'a'
    expect(references.read(text.slice(0, i) + other + text.slice(i + 1))).toBeUndefined()
  }
})

test('nothing else is read as one', () => {
  const text = references.write(anEmail())
  for (const wrong of [
    '',
    'a',
    text.slice(1),
    `${text}a`,
    `${text}=`,
    ` ${text}`,
    text.replace(/.$/, '1'),
    'ß'.repeat(55),
  ])
    expect(references.read(wrong)).toBeUndefined()
  fc.assert(fc.property(fc.string(), (any) => references.read(any) === undefined))
})

test('another key does not read it; an old key beside a new one does', () => {
  const text = references.write(anEmail())
  const signature = references.sign('app', 'https://example.com/')
  expect(createReferences('another').read(text)).toBeUndefined()
  const both = createReferences('another, a secret of the tests')
  expect(both.read(text)).toEqual(references.read(text))
  expect(both.isSigned('app', 'https://example.com/', signature)).toBe(true)
  expect(createReferences('another').isSigned('app', 'https://example.com/', signature)).toBe(false)
})

test('where a link leads is signed for one app', () => {
  const [appId, url] = [newId(), 'https://example.com/?a=1&b=ü']
  const signature = references.sign(appId, url)
  expect(signature).toMatch(/^[\w-]{16}$/)
  expect(references.isSigned(appId, url, signature)).toBe(true)
  expect(references.isSigned(newId(), url, signature)).toBe(false)
  expect(references.isSigned(appId, `${url}x`, signature)).toBe(false)
  for (const wrong of ['', signature.slice(1), `${signature}A`, `${signature}=`, signature.toLowerCase().toUpperCase()])
    expect(references.isSigned(appId, url, wrong)).toBe(false)
})

test('deliveries of one message have ids of their own', () => {
  const email = anEmail()
  expect(emailIdOf(email)).toMatch(/^[a-z2-7]{13}$/)
  for (const name of ['messageId', 'subscriptionId', 'runId'] as const)
    expect(emailIdOf({ ...email, [name]: newId() })).not.toBe(emailIdOf(email))
})
