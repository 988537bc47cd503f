// One contender in a process of its own: sends slices of the same content, and tells the CPU time that each mail took.

import { generateKeyPairSync } from 'node:crypto'
import { createTransport } from 'nodemailer'
import { createDial } from '../../server/src/channels/dial.ts'
import type { DkimSigningKey, EmailItem } from '../../server/src/channels/email/message.ts'
import { openRelayChannel } from '../../server/src/channels/email/relay.ts'
import { systemClock } from '../../server/src/lib/clock.ts'
import { fillPieces } from '../../server/src/lib/placeholders.ts'
import { content } from './content.ts'

export type Contender = 'carillon' | 'nodemailer'
export type Signature = 'none' | 'rsa' | 'ed25519'
export type Start = { contender: Contender; signature: Signature; port: number }
export type Measured = { cpuMicroseconds: number; perSecond: number }

/** What a worker of the server claims at once. */
const SLICE = 100
const WARM_UP_SLICES = 5
const CONNECTIONS = 5
const MAILS_EACH = 100

type SendSlice = (first: number) => Promise<void>

const clock = systemClock()
const key = { domain: 'example.com', selector: 's1' }

function mailOf(n: number, dkim: readonly DkimSigningKey[]): EmailItem {
  const reference = `b${String(n).padStart(54, 'a')}`
  return {
    content,
    reference,
    referenceFor: () => reference,
    to: `somebody${n}@gmail.example`,
    messageIdHeader: `<${reference.slice(-13)}.2611@example.com>`,
    envelopeFrom: `b-${reference}@bounce.example.com`,
    date: clock.now(),
    dkim,
    inboxProvider: 'google',
    source: { appId: 'bench', lane: 'bulk' },
  }
}

const numbers = (first: number) => Array.from({ length: SLICE }, (_, n) => first + n)

function carillon(port: number, signature: Signature): SendSlice {
  const privateKey =
    signature === 'ed25519'
      ? generateKeyPairSync('ed25519').privateKey
      : generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const dkim = signature === 'none' ? [] : [{ ...key, algorithm: signature, privateKey }]
  const channel = openRelayChannel({
    dial: createDial({ allow: ['127.0.0.1'] }),
    host: '127.0.0.1',
    port,
    tls: 'none',
    helo: 'carillon.example.com',
    clock,
    connections: CONNECTIONS,
    mailsEach: MAILS_EACH,
  })
  return async (first) => {
    const outcomes = await channel.send(numbers(first).map((n) => mailOf(n, dkim)))
    const bad = outcomes.find(({ kind }) => kind !== 'sent')
    if (bad) throw new Error(`not all were sent: ${JSON.stringify(bad)}`)
  }
}

function nodemailer(port: number, signature: Signature): SendSlice {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const dkim = { domainName: key.domain, keySelector: key.selector, privateKey: pem }
  const transport = createTransport({
    pool: true,
    host: '127.0.0.1',
    port,
    ignoreTLS: true,
    maxConnections: CONNECTIONS,
    maxMessages: MAILS_EACH,
    ...(signature === 'rsa' && { dkim }),
  })
  return async (first) => {
    await Promise.all(
      numbers(first).map((n) => {
        const { reference, to, messageIdHeader, envelopeFrom, date } = mailOf(n, [])
        return transport.sendMail({
          from: { name: content.from.name ?? '', address: content.from.address },
          replyTo: content.replyTo,
          to,
          subject: content.subject,
          html: fillPieces(content.html, () => reference),
          text: fillPieces(content.text, () => reference),
          messageId: messageIdHeader,
          date,
          envelope: { from: envelopeFrom, to },
          headers: Object.fromEntries(
            content.headers.map(([name, pieces]) => [name, fillPieces(pieces, () => reference)]),
          ),
        })
      }),
    )
  }
}

let sendSlice: SendSlice | undefined
let sent = 0
const send = async (slices: number) => {
  for (let n = 0; n < slices; n++) {
    await sendSlice?.(sent)
    sent += SLICE
  }
}
process.on('message', async (message: Start | { mails: number }) => {
  if ('contender' in message) {
    const { contender, port, signature } = message
    sendSlice = contender === 'carillon' ? carillon(port, signature) : nodemailer(port, signature)
    // Connections are opened and functions compiled.
    await send(WARM_UP_SLICES)
    process.send?.({ mails: sent })
    return
  }
  const [before, began, first] = [process.cpuUsage(), performance.now(), sent]
  await send(Math.ceil(message.mails / SLICE))
  const { user, system } = process.cpuUsage(before)
  const count = sent - first
  const perSecond = (count * 1000) / (performance.now() - began)
  process.send?.({ cpuMicroseconds: (user + system) / count, perSecond } satisfies Measured)
})
