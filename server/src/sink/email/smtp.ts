// A mail server on loopback that accepts everything and forwards nothing (RFC 5321, with SIZE, PIPELINING, 8BITMIME,
// SMTPUTF8, DSN, and optionally STARTTLS and AUTH). Faults can be injected at each stage of a conversation.

import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { createServer } from 'node:net'
import { type SecureContext, TLSSocket, type TlsOptions } from 'node:tls'
import { type MimeMessage, parseMime } from '../../lib/parse-mime.ts'
import type { ServerCertificate } from '../certificate.ts'
import { pour, trickle } from '../garbage.ts'
import { readSmtp, type SmtpInput } from './smtp-input.ts'

/** `message`: while the message arrives. `taken`: once it has arrived. */
export type SmtpStage =
  | 'connect'
  | 'hello'
  | 'starttls'
  | 'auth'
  | 'mail'
  | 'rcpt'
  | 'data'
  | 'message'
  | 'taken'
  | 'reset'

/**
 * `say`: a reply to give instead, including its code. `cut`: closes the connection. `hang`: never replies again.
 * `trickle`: sends nonsense byte by byte. `garbage`: sends a lot of nonsense. A 421 reply ends the conversation.
 */
export type SmtpFault = { say: string } | 'cut' | 'hang' | 'trickle' | 'garbage'

export type ReceivedMessage = {
  from: string
  recipients: readonly string[]
  mail: MimeMessage
  source: Buffer
  isSecret: boolean
}

export type SmtpSettings = {
  /** Called at each stage. `who` is the sender at `mail`, the first recipient from `rcpt` on, and empty before. */
  meet?(stage: SmtpStage, who: string): SmtpFault | undefined
  /**
   * Gets a whole message, which is answered once this resolves. False means that the client is gone and the message was
   * not accepted. A fault happens after the message was accepted.
   */
  take(received: ReceivedMessage, isGone: () => boolean): Promise<boolean | SmtpFault>
  /** With a certificate, the server offers STARTTLS, or uses TLS from the first byte. */
  tls?: (ServerCertificate & { isImplicit?: boolean; contextFor?(name: string): SecureContext }) | undefined
  /** Only this user may send email. If there is TLS, AUTH is offered only over it. */
  auth?: { user: string; password: string } | undefined
  /** Extensions that the server does not offer. */
  without?: readonly string[] | undefined
  port?: number | undefined
}

export type MailServer = { port: number; open(): number; close(): Promise<void> }

const MOST_BYTES = 10_485_760
const MOST_RECIPIENTS = 1_000

export async function listenSmtp(settings: SmtpSettings): Promise<MailServer> {
  const sockets = new Set<Socket>()
  // Without `noDelay`, each of several short replies would wait until the one before it is acknowledged.
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    converse(socket, settings)
      .catch(() => {})
      .finally(() => socket.destroySoon())
  })
  server.listen(settings.port ?? 0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    open: () => sockets.size,
    async close() {
      for (const socket of sockets) socket.destroy()
      if (!server.listening) return
      server.close()
      await once(server, 'close')
    },
  }
}

/** The conversation has ended. */
class ConversationOver extends Error {}

/** Handles one command after the other, even if several arrive at once. */
async function converse(plain: Socket, settings: SmtpSettings) {
  const { meet, take, tls, auth, without = [] } = settings
  let socket: Socket = tls?.isImplicit ? secured(plain, tls) : plain
  let input = readSmtp(socket)
  let isSecret = tls?.isImplicit === true
  let isKnown = auth === undefined
  let sender: string | undefined
  let recipients: string[] = []

  const say = (line: string) => socket.write(`${line}\r\n`)
  const reset = () => {
    sender = undefined
    recipients = []
  }
  /** Returns true if a fault was injected and the conversation continues. */
  async function wentWrong(stage: SmtpStage, who = ''): Promise<boolean> {
    const fault = meet?.(stage, who)
    if (typeof fault === 'string') return breakOff(fault)
    if (fault) say(fault.say)
    if (fault?.say.startsWith('421')) throw new ConversationOver()
    return fault !== undefined
  }

  async function breakOff(fault: Exclude<SmtpFault, object>): Promise<never> {
    if (fault === 'cut') plain.resetAndDestroy()
    if (fault === 'trickle') await trickle(socket)
    if (fault === 'garbage') void pour(socket)
    if (!plain.destroyed) await once(plain, 'close')
    throw new ConversationOver()
  }

  async function begin() {
    const offers = [
      `SIZE ${MOST_BYTES}`,
      '8BITMIME',
      'SMTPUTF8',
      'DSN',
      'PIPELINING',
      ...(tls && !isSecret ? ['STARTTLS'] : []),
      ...(auth && (isSecret || !tls) ? ['AUTH PLAIN LOGIN'] : []),
    ].filter((offer) => !without.includes(offer.split(' ')[0] as string))
    say(['sink.invalid', ...offers].map((line, n) => `250${n < offers.length ? '-' : ' '}${line}`).join('\r\n'))
  }

  async function startTls() {
    if (!tls || isSecret) return say('502 5.5.1 not offered')
    input.release()
    say('220 2.0.0 go ahead')
    socket = secured(plain, tls)
    input = readSmtp(socket)
    isSecret = true
    reset()
  }

  async function receive() {
    say('354 go ahead')
    const [who = ''] = recipients
    const fault = meet?.('message', who)
    if (fault) {
      await input.some()
      plain.resetAndDestroy()
      throw new ConversationOver()
    }
    const source = await input.message(MOST_BYTES)
    if (source === undefined) throw new ConversationOver()
    if (source === 'too large') say('552 5.3.4 too large')
    else {
      const received = { from: sender ?? '', recipients, mail: parseMime(source), source, isSecret }
      const refusal = meet?.('taken', who)
      if (typeof refusal === 'object' && !refusal.say.startsWith('2')) {
        say(refusal.say)
        if (refusal.say.startsWith('421')) throw new ConversationOver()
      } else {
        const verdict = await take(received, () => plain.destroyed)
        if (verdict === false) throw new ConversationOver()
        const fault = verdict === true ? refusal : verdict
        if (typeof fault === 'string') await breakOff(fault)
        say(typeof fault === 'object' ? fault.say : '250 2.0.0 taken')
      }
    }
    reset()
  }

  const commands: Record<string, (line: string) => unknown> = {
    EHLO: async () => (await wentWrong('hello')) || begin(),
    HELO: async () => (await wentWrong('hello')) || say('250 sink.invalid'),
    NOOP: () => say('250 2.0.0 ok'),
    RSET: async () => {
      if (await wentWrong('reset')) return
      reset()
      say('250 2.0.0 ok')
    },
    QUIT() {
      say('221 2.0.0 bye')
      throw new ConversationOver()
    },
    STARTTLS: async () => (await wentWrong('starttls')) || startTls(),
    async AUTH(line) {
      if (await wentWrong('auth')) return
      isKnown = auth !== undefined && (await isSignedIn(line, input, say, auth))
      say(isKnown ? '235 2.7.0 welcome' : '535 5.7.8 not the right password')
    },
    async MAIL(line) {
      const size = Number(/ SIZE=(\d+)/i.exec(line)?.[1] ?? 0)
      const from = addressIn(line) ?? ''
      if (!isKnown) say('530 5.7.0 who are you')
      else if (sender !== undefined) say('503 5.5.1 one message at a time')
      else if (size > MOST_BYTES) say('552 5.3.4 too large')
      else if (!(await wentWrong('mail', from))) {
        sender = from
        say('250 2.1.0 ok')
      }
    },
    async RCPT(line) {
      const to = addressIn(line)
      if (sender === undefined) say('503 5.5.1 MAIL first')
      else if (!to) say('501 5.1.3 not an address')
      else if (recipients.length >= MOST_RECIPIENTS) say('452 4.5.3 too many recipients')
      else if (!(await wentWrong('rcpt', to))) {
        recipients.push(to)
        say('250 2.1.5 ok')
      }
    },
    async DATA() {
      if (recipients.length === 0) say('503 5.5.1 RCPT first')
      else if (!(await wentWrong('data', recipients[0]))) await receive()
    },
  }

  if (!(await wentWrong('connect'))) say('220 sink.invalid ESMTP')
  for (let line = await input.line(); line !== undefined; line = await input.line()) {
    const [verb = ''] = line.toUpperCase().split(/[ :]/)
    const command = Object.hasOwn(commands, verb) ? commands[verb] : undefined
    if (command) await command(line)
    else say('502 5.5.2 not known here')
  }
}

function secured(plain: Socket, { key, cert, contextFor }: NonNullable<SmtpSettings['tls']>): TLSSocket {
  const SNICallback: TlsOptions['SNICallback'] = (name, done) => done(null, contextFor?.(name))
  const socket = new TLSSocket(plain, { isServer: true, key, cert, ...(contextFor && { SNICallback }) })
  socket.on('error', () => plain.destroy())
  return socket
}

async function isSignedIn(
  line: string,
  input: SmtpInput,
  say: (line: string) => void,
  { user, password }: { user: string; password: string },
): Promise<boolean> {
  const ask = async (prompt: string) => {
    say(`334 ${prompt}`.trimEnd())
    return (await input.line()) ?? ''
  }
  const decode = (text: string) => Buffer.from(text, 'base64').toString()
  const [, way = '', first] = line.split(' ')
  if (way.toUpperCase() === 'PLAIN') return decode(first ?? (await ask(''))) === `\0${user}\0${password}`
  if (way.toUpperCase() !== 'LOGIN') return false
  const given = decode(first ?? (await ask('VXNlcm5hbWU6')))
  return decode(await ask('UGFzc3dvcmQ6')) === password && given === user
}

const addressIn = (line: string) => /:\s*<((?:"(?:[^"\\]|\\.)*"|[^>"])*)>/.exec(line)?.[1]
