import { describe, expect, test } from 'vitest'
import { newApiKey, newSecretKey, secretBox, sha256 } from './secrets.ts'

describe('a sealed secret', () => {
  const box = secretBox('a key that is long enough')

  test('opens to what it was, and shows nothing of it', () => {
    const sealed = box.seal('-----BEGIN PRIVATE KEY-----', 'app 1 apns_p8')
    expect(box.open(sealed, 'app 1 apns_p8')).toBe('-----BEGIN PRIVATE KEY-----')
    expect(sealed).not.toContain('PRIVATE')
  })

  test('is another text each time', () => {
    expect(box.seal('same', 'here')).not.toBe(box.seal('same', 'here'))
  })

  test('does not open in another place, under another key, or when a letter is changed', () => {
    const sealed = box.seal('secret', 'app 1')
    expect(() => box.open(sealed, 'app 2')).toThrow()
    expect(() => secretBox('another key, long enough').open(sealed, 'app 1')).toThrow()
    const at = sealed.lastIndexOf('.') + 20
    const changed = sealed.slice(0, at) + (sealed[at] === 'A' ? 'B' : 'A') + sealed.slice(at + 1)
    expect(() => box.open(changed, 'app 1')).toThrow()
  })

  test('survives a rotation: the new key writes, the old one is still read', () => {
    const old = box.seal('secret', 'app 1')
    const rotated = secretBox('the new key of this year, a key that is long enough')
    expect(rotated.open(old, 'app 1')).toBe('secret')
    const fresh = rotated.seal('secret', 'app 1')
    expect(secretBox('the new key of this year').open(fresh, 'app 1')).toBe('secret')
    expect(() => box.open(fresh, 'app 1')).toThrow()
  })
})

test('keys look like those of the service, and hold at least 160 random bits', () => {
  expect(newApiKey('app')).toMatch(/^os_v2_app_[a-z2-7]{52}$/)
  expect(newApiKey('org')).toMatch(/^os_v2_org_[a-z2-7]{52}$/)
  expect(new Set(Array.from({ length: 1_000 }, () => newApiKey('app'))).size).toBe(1_000)
  expect(Buffer.from(newSecretKey(), 'base64')).toHaveLength(32)
})

test('the hash is SHA-256 of the text in UTF-8', () => {
  expect(sha256('é').toString('hex')).toBe('4a99557e4033c3539de2eb65472017cad5f9557f7a0625a09f1c3f6e2ba69c4c')
})
