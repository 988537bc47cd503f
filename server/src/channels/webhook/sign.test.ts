import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../lib/clock.ts'
import { newWebhookSecret, readWebhookSecret, signWebhook } from './sign.ts'

const keyOf = (secret: string) => readWebhookSecret(secret) as Buffer
const body = JSON.stringify({ type: 'message.sent', text: 'Größe ✓ 🎉' })

describe('a signature', () => {
  test('is the one of the standard’s own example', () => {
    const signed = signWebhook(
      [keyOf('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')],
      'msg_p5jXN8AQM9LWM0D4loKWxJek',
      new Date(1614265330_000),
      '{"test": 2432232314}',
    )
    expect(signed).toEqual({
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    })
  })

  test('is believed by the standard’s verifier, and not for anything else', () => {
    const secret = newWebhookSecret()
    const signed = { ...signWebhook([keyOf(secret)], 'a_1', systemClock().now(), body) }
    const receiver = new Webhook(secret)
    expect(receiver.verify(body, signed)).toEqual(JSON.parse(body))
    expect(() => receiver.verify(`${body} `, signed)).toThrow()
    expect(() => receiver.verify(body, { ...signed, 'webhook-id': 'a_2' })).toThrow()
    expect(() => new Webhook(newWebhookSecret()).verify(body, signed)).toThrow()
  })

  test('satisfies receivers with the old and with the new secret while it is being replaced', () => {
    const [now, before, other] = [newWebhookSecret(), newWebhookSecret(), newWebhookSecret()]
    const signed = { ...signWebhook([keyOf(now), keyOf(before)], 'a_1', systemClock().now(), body) }
    expect(new Webhook(now).verify(body, signed)).toBeTruthy()
    expect(new Webhook(before).verify(body, signed)).toBeTruthy()
    expect(() => new Webhook(other).verify(body, signed)).toThrow()
  })
})

test('a secret has a prefix and 24 to 64 bytes', () => {
  const secretOf = (bytes: number) => `whsec_${Buffer.alloc(bytes, 1).toString('base64')}`
  expect(readWebhookSecret(newWebhookSecret())).toHaveLength(32)
  expect(readWebhookSecret(secretOf(24))).toHaveLength(24)
  expect(readWebhookSecret(secretOf(64))).toHaveLength(64)
  for (const wrong of ['', 'whsec_', 'secret', secretOf(23), secretOf(65), `${secretOf(24)}!`, secretOf(24).slice(6)])
    expect(readWebhookSecret(wrong), wrong).toBeUndefined()
})
