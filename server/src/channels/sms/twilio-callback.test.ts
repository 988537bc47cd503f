import { createHash, createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { isFromTwilio, readTwilioCallback } from './twilio-callback.ts'

const read = (fields: Record<string, string>) => readTwilioCallback(new URLSearchParams(fields))

describe('a report', () => {
  test.each([
    ['queued', 'passed-on'],
    ['sending', 'passed-on'],
    ['sent', 'passed-on'],
    ['delivered', 'delivered'],
    ['read', 'delivered'],
  ])('of %s says %s', (status, state) => {
    expect(read({ MessageSid: 'SM1', MessageStatus: status, To: '+1500', From: '+1501' })).toEqual({
      kind: 'receipt',
      receipt: { id: 'SM1', state },
    })
  })

  test.each([
    ['undelivered', '30005', 'gone', 'number out of reach'],
    ['undelivered', '30003', 'failed', 'handset out of reach'],
    ['undelivered', '30007', 'failed', 'filtered by the carrier'],
    ['failed', '21610', 'gone', 'opted out'],
    ['failed', '12', 'failed', 'failed'],
    ['undelivered', '', 'failed', 'undelivered'],
  ])('of %s with code %s says %s: %s', (status, code, state, reason) => {
    expect(read({ SmsSid: 'SM1', SmsStatus: status, ErrorCode: code })).toEqual({
      kind: 'receipt',
      receipt: { id: 'SM1', state, reason },
    })
  })

  test('of nothing that we know is none', () => {
    for (const status of ['', 'constructor', 'partially_delivered'])
      expect(read({ MessageSid: 'SM1', MessageStatus: status })).toBeUndefined()
    expect(read({ MessageStatus: 'sent' })).toBeUndefined()
    expect(read({})).toBeUndefined()
  })
})

describe('a text from somebody', () => {
  const sent = { MessageSid: 'SM2', SmsStatus: 'received', From: '+1500', To: '+1501' }
  test('is told with what it asks for', () => {
    expect(read({ ...sent, Body: 'Where is my order?' })).toEqual({
      kind: 'text',
      text: { id: 'SM2', from: '+1500', to: '+1501', text: 'Where is my order?' },
    })
    expect(read({ ...sent, Body: 'Stop' })).toMatchObject({ text: { optOut: 'stop' } })
    expect(read({ ...sent, Body: 'ARRET', OptOutType: 'STOP' })).toMatchObject({ text: { optOut: 'stop' } })
    expect(read({ ...sent, Body: '' })).toMatchObject({ kind: 'text', text: { text: '' } })
  })
})

describe('a signature', () => {
  const authToken = '12345'
  // The example of Twilio's own libraries.
  const form = 'CallSid=CA1234567890ABCDE&Caller=%2B14158675309&Digits=1234&From=%2B14158675309&To=%2B18005551212'
  const url = 'https://mycompany.com/myapp.php?foo=1&bar=2'
  const signature = 'RSOYDt4T1cUTdK1PDd93/VVr8B8='
  const example = { authToken, url, body: form, isForm: true, signature }

  test('is the documented one', () => {
    expect(isFromTwilio(example)).toBe(true)
  })

  test('fits nothing else', () => {
    for (const change of [
      { authToken: '12346' },
      { url: 'https://mycompany.com/myapp.php?foo=1&bar=3' },
      { url: 'http://mycompany.com/myapp.php?foo=1&bar=2' },
      { url: 'nonsense' },
      { body: form.replace('1234&', '1235&') },
      { body: `${form}&Extra=1` },
      { isForm: false },
      { signature: undefined },
      { signature: '' },
      { signature: signature.slice(0, -1) },
    ])
      expect(isFromTwilio({ ...example, ...change }), JSON.stringify(change)).toBe(false)
  })

  test('fits with and without the port', () => {
    expect(isFromTwilio({ ...example, url: url.replace('.com', '.com:443') })).toBe(true)
    const withPort = createHmac('sha1', authToken).update('https://a.example:443/x').digest('base64')
    expect(isFromTwilio({ authToken, url: 'https://a.example/x', body: '', isForm: true, signature: withPort })).toBe(
      true,
    )
  })

  test('counts repeated fields once for each value', () => {
    const repeated = createHmac('sha1', authToken).update('https://a.example/MediaUrlaMediaUrlbToz').digest('base64')
    const body = 'To=z&MediaUrl=b&MediaUrl=a&MediaUrl=b'
    expect(isFromTwilio({ authToken, url: 'https://a.example/', body, isForm: true, signature: repeated })).toBe(true)
  })

  test('of a body that is no form goes by its hash in the address', () => {
    const body = '{"a":1}'
    const address = `https://a.example/x?bodySHA256=${createHash('sha256').update(body).digest('hex')}`
    const signed = createHmac('sha1', authToken).update(address).digest('base64')
    const callback = { authToken, url: address, body, isForm: false, signature: signed }
    expect(isFromTwilio(callback)).toBe(true)
    expect(isFromTwilio({ ...callback, body: `${body} ` })).toBe(false)
  })
})
