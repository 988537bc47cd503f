// A push service for Firefox: RFC 8030 on the side of the sender, Mozilla's protocol over a websocket on that of the browser.

import { randomBytes, randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'ws'
import type { Clock } from '../../src/lib/clock.ts'
import { checkWebPush, webPushRefusal } from '../../src/sink/push/check-web-push.ts'
import { type ScriptedProvider, startProvider } from '../sinks/scripted.ts'

export type Autopush = {
  /** Where Firefox connects to. */
  url: string
  route: ScriptedProvider['route']
  /** What Firefox said of each push that it took: 100 decrypted and delivered, 101 not decryptable. */
  acks: number[]
  corruptNext(): void
  /** As after a loss of data: Firefox is told that it has no subscriptions any more. */
  forgetSubscriptions(): void
  close(): Promise<void>
}

const HOST = 'updates.push.example.com'
/** By which Firefox knows whether the service still knows it. */
const newUaid = () => randomBytes(16).toString('hex')

type Registration = { channelID: string; key: string }

export async function startAutopush(clock: Clock): Promise<Autopush> {
  const origin = `https://${HOST}`
  /** By path. */
  const registrations = new Map<string, Registration>()
  let uaid = newUaid()
  const acks: number[] = []
  let isNextCorrupt = false

  const provider = await startProvider({ hosts: [HOST] }, () => ({
    addressOf: ({ path }) => path,
    check(request) {
      const registration = registrations.get(request.path)
      // Firefox writes the key with padding.
      return registration
        ? checkWebPush(request, Buffer.from(registration.key, 'base64url'), clock.now())
        : webPushRefusal(404, 'no such subscription')
    },
    accept({ path, headers, body }) {
      const { channelID } = registrations.get(path) as Registration
      const data = Buffer.from(body)
      if (isNextCorrupt) data[data.length - 1] = (data.at(-1) as number) ^ 1
      isNextCorrupt = false
      tell({
        messageType: 'notification',
        channelID,
        version: randomUUID(),
        ttl: Number(headers.ttl),
        data: data.toString('base64url'),
        headers: { encoding: 'aes128gcm' },
      })
      return { status: 201, headers: { location: `${origin}/m/${randomUUID()}` } }
    },
  }))

  const server = createServer()
  const sockets = new WebSocketServer({ server, handleProtocols: () => 'push-notification' })
  const tell = (message: object) => {
    for (const socket of sockets.clients) socket.send(JSON.stringify(message))
  }
  sockets.on('connection', (socket) => {
    socket.on('message', (data) => {
      const answer = answerTo(JSON.parse(data.toString()))
      if (answer) socket.send(JSON.stringify(answer))
    })
  })

  // biome-ignore lint/suspicious/noExplicitAny: the messages of Mozilla's protocol, of which each kind has its own fields
  function answerTo({ messageType, channelID, key, updates }: any): object | undefined {
    switch (messageType) {
      case undefined:
        return {}
      case 'hello':
        return { messageType, uaid, status: 200, use_webpush: true, broadcasts: {} }
      case 'register': {
        const path = `/wpush/v2/${randomBytes(32).toString('base64url')}`
        registrations.set(path, { channelID, key })
        return { messageType, channelID, status: 200, pushEndpoint: origin + path }
      }
      case 'unregister':
        for (const [path, it] of registrations) if (it.channelID === channelID) registrations.delete(path)
        return { messageType, channelID, status: 200 }
      case 'ack':
        acks.push(...updates.map(({ code }: { code: number }) => code))
    }
    return undefined
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    route: provider.route,
    acks,
    corruptNext() {
      isNextCorrupt = true
    },
    forgetSubscriptions() {
      registrations.clear()
      uaid = newUaid()
      for (const socket of sockets.clients) socket.terminate()
    },
    async close() {
      for (const socket of sockets.clients) socket.terminate()
      server.close()
      await provider.close()
    },
  }
}
