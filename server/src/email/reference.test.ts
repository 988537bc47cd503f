import fc from 'fast-check'
import { expect, test } from 'vitest'
import { newId } from '../lib/ids.ts'
import { createReferences, emailIdOf, emailReferenceOf, type ReferencePurpose } from './reference.ts'

const references = createReferences('a secret of the tests')
const anEmail = () => ({
  appId: newId(),
  expandAt: new Date('2030-03-31T23:59:59.999Z'),
  messageId: newId(),
  subscriptionId: newId(),
  runId: '00000000-0000-0000-0000-000000000000',
})

const purposes: [ReferencePurpose, ...ReferencePurpose[]] = [
  'open',
  'click',
  'view',
  'unsubscribe',
  'preferences',
  'report',
]

test('it names the app, the month and the delivery', () => {
  const email = anEmail()
  expect(references.read(references.write(emailReferenceOf(email), 'open'), 'open')).toEqual({
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
      expect(references.read(references.write(emailReferenceOf(email), 'open'), 'open')).toEqual({
        appId: email.appId,
        month: new Date(Date.UTC(expandAt.getUTCFullYear(), expandAt.getUTCMonth())),
        id: emailIdOf(email),
      })
    }),
  )
})

test('what was written for one purpose is read for no other', () => {
  const reference = emailReferenceOf(anEmail())
  for (const purpose of purposes) {
    const text = references.write(reference, purpose)
    const readFor = purposes.filter((it) => references.read(text, it) !== undefined)
    expect(readFor).toEqual([purpose])
    expect(references.read(text, ...purposes)).toEqual(reference)
  }
})

/** With the key of these tests, over the name alone. */
const OLD_REFERENCE = 'aaaaaaaaabaabaaaaaaaaaaaaeawvz7ut3wfrefyzdl6yniwizrrcni'

test('one that is signed for no purpose, as they once were, is read for none', () => {
  expect(references.read(OLD_REFERENCE, ...purposes)).toBeUndefined()
})

test('it survives a change of case, and fits an address', () => {
  const email = anEmail()
  const text = references.write(emailReferenceOf(email), 'open')
  expect(text).toMatch(/^[a-z2-7]{55}$/)
  expect(`b-${text}`.length).toBeLessThanOrEqual(64)
  expect(references.read(text.toUpperCase(), 'open')).toEqual(references.read(text, 'open'))
})

test('one that was changed in any place is none', () => {
  const text = references.write(emailReferenceOf(anEmail()), 'open')
  for (let i = 0; i < text.length; i++) {
    const other = text[i] === 'a' ? 'b' : 'a'
    expect(references.read(text.slice(0, i) + other + text.slice(i + 1), 'open')).toBeUndefined()
  }
})

test('nothing else is read as one', () => {
  const text = references.write(emailReferenceOf(anEmail()), 'open')
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
    expect(references.read(wrong, 'open')).toBeUndefined()
  fc.assert(fc.property(fc.string(), (any) => references.read(any, 'open') === undefined))
})

test('another key does not read it; an old key beside a new one does', () => {
  const text = references.write(emailReferenceOf(anEmail()), 'open')
  const signature = references.sign('app', 'https://example.com/')
  expect(createReferences('another').read(text, 'open')).toBeUndefined()
  const both = createReferences('another, a secret of the tests')
  expect(both.read(text, 'open')).toEqual(references.read(text, 'open'))
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
