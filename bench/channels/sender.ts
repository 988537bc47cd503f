// One contender in a process of its own: sends slices of static content, and tells the CPU time that each message took.

import { createECDH, generateKeyPairSync, randomBytes } from 'node:crypto'
import { Agent } from 'node:https'
import apn from '@parse/node-apn'
import webpush from 'web-push'
import { openApnsChannel } from '../../server/src/channels/push/apns/channel.ts'
import { writeApnsPush } from '../../server/src/channels/push/apns/payload.ts'
import type { PushContent } from '../../server/src/channels/push/content.ts'
import { openWebPushChannel } from '../../server/src/channels/push/web-push/channel.ts'
import { writeWebPush } from '../../server/src/channels/push/web-push/payload.ts'
import { systemClock } from '../../server/src/lib/clock.ts'
import type { Sinks } from './sink.ts'

/** What a worker of the server claims at once. */
const SLICE = 500

const WARM_UP_SLICES = 20

export type Contender = 'apns' | 'node-apn' | 'web push' | 'web-push'
export type Start = { contender: Contender; sinks: Sinks }
export type Measured = { cpuMicroseconds: number; perSecond: number }

type SendSlice = () => Promise<void>

const clock = systemClock()
const content: PushContent = {
  messageId: '11111111-1111-4111-8111-111111111111',
  expiresAt: new Date(clock.leaseMs() + 86_400_000),
  priority: 10,
  title: 'The bells ring',
  body: 'x'.repeat(200),
  url: 'https://example.com/bells',
  data: { order: '1234567890', kind: 'benchmark' },
}
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const apnsKey = {
  key: ec.export({ type: 'pkcs8', format: 'pem' }).toString(),
  keyId: 'KEY1234567',
  teamId: 'TEAM123456',
}
const tokens = Array.from({ length: SLICE }, () => randomBytes(32).toString('hex'))
const subject = 'mailto:push@example.com'
const vapid = { ...webpush.generateVAPIDKeys(), subject }
const browsers = tokens.map((token) => ({
  path: `/wpush/${token}`,
  p256dh: createECDH('prime256v1').generateKeys('base64url'),
  auth: randomBytes(16).toString('base64url'),
}))

function fail(what: unknown): never {
  throw new Error(`not all were sent: ${JSON.stringify(what)}`)
}

const contenders: Record<Contender, (sinks: Sinks) => SendSlice> = {
  apns({ h2: port, ca }) {
    const route = { ca, connect: { 'https://api.push.apple.com': { host: '127.0.0.1', port } } }
    const channel = openApnsChannel({ clock, route })
    const credentials = { kind: 'token', environment: 'production', topic: 'com.example.app', ...apnsKey } as const
    return async () => {
      const push = writeApnsPush(content)
      const outcomes = await channel.send(tokens.map((token) => ({ appId: 'bench', token, credentials, push })))
      const bad = outcomes.find(({ kind }) => kind !== 'sent')
      if (bad) fail(bad)
    }
  },
  'node-apn'({ h2: port, ca }) {
    const options = { token: apnsKey, production: true, address: '127.0.0.1', port, ca: [ca] }
    const provider = new apn.Provider(options as apn.ProviderOptions)
    return async () => {
      const notification = new apn.Notification()
      notification.rawPayload = JSON.parse(writeApnsPush(content).body)
      notification.topic = 'com.example.app'
      notification.pushType = 'alert'
      notification.priority = 10
      const { failed } = await provider.send(notification, tokens)
      if (failed.length > 0) fail(failed[0])
    }
  },
  'web push'({ h2: port, ca }) {
    const origin = 'https://push.example.com'
    const channel = openWebPushChannel({ clock, route: { ca, connect: { [origin]: { host: '127.0.0.1', port } } } })
    return async () => {
      const push = writeWebPush(content)
      const items = browsers.map(({ path, p256dh, auth }) => ({
        appId: 'bench',
        endpoint: origin + path,
        p256dh,
        auth,
        vapid,
        push,
      }))
      const bad = (await channel.send(items)).find(({ kind }) => kind !== 'sent')
      if (bad) fail(bad)
    }
  },
  'web-push'({ h1: port, ca }) {
    const agent = new Agent({ ca, keepAlive: true, maxSockets: 32 })
    const options = { agent, TTL: 86_400, urgency: 'high', vapidDetails: vapid } as const
    return async () => {
      const payload = writeWebPush(content).plain
      await Promise.all(
        browsers.map(({ path, p256dh, auth }) =>
          webpush.sendNotification(
            { endpoint: `https://127.0.0.1:${port}${path}`, keys: { p256dh, auth } },
            payload,
            options,
          ),
        ),
      )
    }
  },
}

let sendSlice: SendSlice | undefined
process.on('message', async (message: Start | { slices: number }) => {
  if ('contender' in message) {
    sendSlice = contenders[message.contender](message.sinks)
    // Connections are opened, tokens signed and functions compiled.
    for (let n = 0; n < WARM_UP_SLICES; n++) await sendSlice()
    process.send?.({})
    return
  }
  const [before, began] = [process.cpuUsage(), performance.now()]
  for (let n = 0; n < message.slices; n++) await sendSlice?.()
  const { user, system } = process.cpuUsage(before)
  const count = message.slices * SLICE
  const perSecond = (count * 1000) / (performance.now() - began)
  process.send?.({ cpuMicroseconds: (user + system) / count, perSecond } satisfies Measured)
})
