import { createPrivateKey, X509Certificate } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { derOf, hostileP12, hostileP12Inside, p12Tree } from '../../../test/credentials.ts'
import { elliptic, keychain, unicode, withoutKey } from '../../../test/fixtures/p12.ts'
import { openP12 } from './open-p12.ts'

const OWNER = 'an organization'

describe('a p12', () => {
  test.each([
    ['as Keychain writes it, with RC2 of 40 bits', keychain, 'secret', 'com.example.carillon.test'],
    ['under triple DES', derOf(p12Tree('abc', 'com.example.a')), 'abc', 'com.example.a'],
    ['under AES', derOf(p12Tree('abc', 'com.example.b', 'aes256')), 'abc', 'com.example.b'],
    ['with an empty password', derOf(p12Tree('')), '', 'com.example.made'],
    ['with a password that is not ASCII', unicode, 'pässwörd€', 'com.example.carillon.test'],
    ['with an elliptic key', elliptic, 'secret', 'com.example.carillon.test'],
  ])('%s is opened', async (_, file, password, subjectId) => {
    const opened = await openP12(OWNER, file, password)
    if ('problem' in opened) throw new Error(opened.problem)
    expect(opened.subjectId).toBe(subjectId)
    const certificate = new X509Certificate(opened.certificate)
    expect(certificate.checkPrivateKey(createPrivateKey(opened.key))).toBe(true)
    expect(certificate.verify(certificate.publicKey)).toBe(true)
  })

  test.each([
    ['with a wrong password', keychain, 'Secret', 'not opened'],
    ['with a password that is missing', keychain, '', 'not opened'],
    ['without the private key', withoutKey, 'secret', 'no pair'],
    ['cut short', keychain.subarray(0, 500), 'secret', 'not a p12'],
    ['that is something else', Buffer.from('-----BEGIN CERTIFICATE-----'), '', 'not a p12'],
    ['that is nothing', Buffer.alloc(0), '', 'not a p12'],
  ])('%s is told', async (_, file, password, problem) => {
    expect(await openP12(OWNER, file, password)).toEqual({ problem })
  })

  test('that is damaged anywhere is told, or opened where nothing depends on it', async () => {
    for (let at = 3; at < keychain.length; at += 97) {
      const damaged = Buffer.from(keychain)
      damaged[at] = (damaged[at] as number) ^ 0xff
      const outcome = await openP12(OWNER, damaged, 'secret')
      expect([at, 'problem' in outcome || 'key' in outcome]).toEqual([at, true])
    }
  })

  test.each([
    ['to check it', hostileP12()],
    ['for what triple DES encrypts', hostileP12Inside('3des')],
    ['for what AES encrypts', hostileP12Inside('aes256')],
  ])('with two billion rounds %s is refused before any of them', async (_, file) => {
    expect(await openP12(OWNER, file, 'x')).toEqual({ problem: 'too many rounds' })
  })

  test('is one of few of its organization, and waits for none of another', async () => {
    const order: string[] = []
    const noted = (name: string, owner: string, file: Buffer, password: string) =>
      openP12(owner, file, password).then((outcome) => {
        order.push(name)
        return outcome
      })
    const hostile = Array.from({ length: 4 }, (_, n) => noted(`hostile ${n}`, 'hostile', Buffer.from('x'), ''))
    await expect(openP12('hostile', keychain, 'secret')).rejects.toMatchObject({ kind: 'limited' })
    expect(await noted('other', 'other', keychain, 'secret')).toHaveProperty('key')
    expect(new Set(await Promise.all(hostile))).toEqual(new Set(hostile.map(() => ({ problem: 'not a p12' }))))
    expect(order.filter((name) => name !== 'other')).toEqual(['hostile 0', 'hostile 1', 'hostile 2', 'hostile 3'])
    expect(await openP12('hostile', keychain, 'secret')).toHaveProperty('key')
  })
})
