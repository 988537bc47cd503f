import { createPrivateKey, X509Certificate } from 'node:crypto'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { derOf, hostileP12, p12Tree } from '../../test/credentials.ts'
import { elliptic, keychain, unicode, withoutKey } from '../../test/fixtures/p12.ts'
import { openP12 } from './open-p12.ts'

describe('a p12', () => {
  test.each([
    ['as Keychain writes it, with RC2 of 40 bits', keychain, 'secret', 'com.example.carillon.test'],
    ['under triple DES', derOf(p12Tree('abc', 'com.example.a')), 'abc', 'com.example.a'],
    ['under AES', derOf(p12Tree('abc', 'com.example.b', 'aes256')), 'abc', 'com.example.b'],
    ['with an empty password', derOf(p12Tree('')), '', 'com.example.made'],
    ['with a password that is not ASCII', unicode, 'pässwörd€', 'com.example.carillon.test'],
    ['with an elliptic key', elliptic, 'secret', 'com.example.carillon.test'],
  ])('%s is opened', async (_, file, password, subjectId) => {
    const opened = await openP12(file, password)
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
    expect(await openP12(file, password)).toEqual({ problem })
  })

  test('that is damaged anywhere is told, or opened where nothing depends on it', async () => {
    for (let at = 3; at < keychain.length; at += 97) {
      const damaged = Buffer.from(keychain)
      damaged[at] = (damaged[at] as number) ^ 0xff
      const outcome = await openP12(damaged, 'secret')
      expect([at, 'problem' in outcome || 'key' in outcome]).toEqual([at, true])
    }
  })

  test('with two billion rounds is given up, and nothing waits for it meanwhile', async () => {
    const order: string[] = []
    const opened = openP12(hostileP12(), 'x', 1_000).then((outcome) => {
      order.push('given up')
      return outcome
    })
    await nextTurn()
    order.push('something else')
    expect(await opened).toEqual({ problem: 'too long' })
    expect(order).toEqual(['something else', 'given up'])
    // The thread is gone: the next one has its turn.
    expect(await openP12(keychain, 'secret')).toHaveProperty('key')
  })

  test('is not one of many at once', async () => {
    const waiting = Array.from({ length: 8 }, () => openP12(Buffer.from('x'), ''))
    expect(() => openP12(keychain, 'secret')).toThrow('Service temporarily unavailable')
    expect(new Set(await Promise.all(waiting))).toEqual(new Set(waiting.map(() => ({ problem: 'not a p12' }))))
    expect(await openP12(keychain, 'secret')).toHaveProperty('key')
  })
})
