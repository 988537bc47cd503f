// Signatures, checked by an implementation that shares nothing with ours.

import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import fc from 'fast-check'
import { dkimVerify } from 'mailauth/lib/dkim/verify.js'
import { describe, expect, test } from 'vitest'
import { aMail, CONTENT } from '../../../../test/channels/subjects/mail.ts'
import type { DkimSigningKey, EmailItem } from '../message.ts'
import { encodeBase64 } from './base64.ts'
import { buildMessage } from './build-message.ts'

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const ed25519 = generateKeyPairSync('ed25519')
const keyOf = (algorithm: DkimSigningKey['algorithm'], privateKey: KeyObject, selector: string): DkimSigningKey => ({
  domain: 'example.com',
  selector,
  algorithm,
  privateKey,
})
const keys = {
  rsa: keyOf('rsa', rsa.privateKey, 'r1'),
  ed25519: keyOf('ed25519', ed25519.privateKey, 'e1'),
}

const RECORDS: Record<string, string> = {
  'r1._domainkey.example.com': `v=DKIM1; k=rsa; p=${rsa.publicKey.export({ type: 'spki', format: 'der' }).toString('base64')}`,
  'e1._domainkey.example.com': `v=DKIM1; k=ed25519; p=${ed25519.publicKey.export({ type: 'spki', format: 'der' }).subarray(-32).toString('base64')}`,
}

async function resolver(name: string): Promise<string[][]> {
  const record = RECORDS[name]
  if (record === undefined) throw Object.assign(new Error('no such name'), { code: 'ENOTFOUND' })
  return [[record]]
}

async function verify(message: Buffer) {
  const { results } = await dkimVerify(message, { resolver, curTime: new Date('2030-01-01T09:00:01Z') })
  return (results as unknown as { status: { result: string; aligned: string }; algo: string }[]).map(
    ({ status: { result, aligned }, algo }) => ({ result, aligned, algo }),
  )
}

const signed = (item: Partial<EmailItem> = {}) => buildMessage(aMail({ dkim: [keys.rsa, keys.ed25519], ...item }))
const results = async (message: Buffer) => (await verify(message)).map(({ result }) => result)

describe('a signed mail', () => {
  test('passes with both algorithms, aligned with the sender', async () => {
    const [one, other] = await verify(await signed())
    const headers = [
      ...['from', 'from', 'to', 'subject', 'date', 'message-id', 'reply-to', 'mime-version', 'content-type'],
      ...['list-unsubscribe', 'list-unsubscribe-post', 'feedback-id'],
    ]
    expect(one).toMatchObject({ result: 'pass', aligned: 'example.com', algo: 'rsa-sha256' })
    expect(other).toMatchObject({ result: 'pass', aligned: 'example.com', algo: 'ed25519-sha256' })
    const names = /^ h=(.*);\r$/m.exec((await signed()).toString())?.[1]
    expect(names?.split(':')).toEqual(headers)
  })

  test('passes when servers on the way fold and space it differently', async () => {
    const message = (await signed()).toString()
    const changed = message
      .replace('MIME-Version: 1.0', 'MIME-Version:   1.0  ')
      .replace('\r\nSubject: ', '\r\nSUBJECT:\r\n ')
      .replace('They ring', 'They   ring')
      .replace(/$/, '\r\n\r\n')
    expect(await results(Buffer.from(changed))).toEqual(['pass', 'pass'])
  })

  test.each([
    ['the text', 'They ring', 'They sing'],
    ['the subject', '\r\nSubject: ', '\r\nSubject: Re: '],
    ['the sender', 'news@example.com', 'else@example.com'],
    ['the way to unsubscribe', 'e/u/stop', 'e/u/xtop'],
    ['a second sender', '\r\nTo: ', '\r\nFrom: a@example.com\r\nTo: '],
  ])('fails when somebody changes %s', async (_, from, to) => {
    const message = (await signed()).toString()
    expect(message).toContain(from)
    for (const result of await results(Buffer.from(message.replace(from, to)))) expect(result).not.toBe('pass')
  })

  test('passes whatever it says, and to whomever', async () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 200 }),
      fc
        .array(fc.constantFrom(' ', '\t', '\n', '\r\n', 'a', '  ', 'ä', '.', '='), { maxLength: 40 })
        .map((it) => it.join('')),
    )
    const pieces = fc
      .array(text, { maxLength: 3 })
      .map((texts) => texts.flatMap((it, n) => (n === 0 ? [it] : [`place${n}`, it])))
    const to = fc.constantFrom('a@example.net', '"two  spaces"@example.net', 'jörg@example.net')
    await fc.assert(
      fc.asyncProperty(pieces, pieces, text, to, async (html, body, subject, to) => {
        const content = { ...CONTENT, html, text: body, subject }
        expect(await results(await signed({ content, to, dkim: [keys.ed25519] }))).toEqual(['pass'])
      }),
      { numRuns: 100 },
    )
  })

  test('is signed with the files that hang on to it', async () => {
    const fileOf = (name: string) => ({
      name,
      contentType: 'text/csv',
      encoded: encodeBase64(Buffer.from('a  b\n\n ')),
    })
    for (const said of [{}, { text: [], html: ['<p>They ring</p> \n\n\n'] }, { text: [], html: [] }]) {
      const content = { ...CONTENT, ...said, files: ['two  spaces .csv', 'Glöckchen  .csv', ''].map(fileOf) }
      const message = (await signed({ content })).toString('latin1')
      expect(await results(Buffer.from(message, 'latin1'))).toEqual(['pass', 'pass'])
      const changed = message.replace('text/csv', 'text/xml')
      for (const result of await results(Buffer.from(changed, 'latin1'))) expect(result).not.toBe('pass')
    }
  })

  test('is not made with a key of another kind', async () => {
    await expect(signed({ dkim: [{ ...keys.rsa, algorithm: 'ed25519' }] })).rejects.toThrow('signing key not valid')
    await expect(signed({ dkim: [{ ...keys.rsa, selector: 'a; d=else.example' }] })).rejects.toThrow('not valid')
  })
})
