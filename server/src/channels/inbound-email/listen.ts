// A mail server that receives what comes back from our own email, such as bounces and complaints. It accepts email only
// for the mailboxes that `hasMailbox` knows and relays nothing. It replies 250 only after `take` is done with the
// email, so that the sender retries if anything fails before.

import { once } from 'node:events'
import type { AddressInfo, Server, Socket } from 'node:net'
import { createServer } from 'node:net'
import { plainAddress } from '../../lib/networks.ts'
import { createSmtpInputReader, type SmtpInputReader } from './input.ts'

export type ReceivedEmail = { from: string; to: string[]; message: Buffer }

export type InboundSmtpSettings = {
  host: string
  port: number
  /** The name in our greeting. */
  name: string
  hasMailbox(address: string): boolean
  /** Resolves when the email is recorded. If it rejects, the sender is asked to retry later. */
  take(mail: ReceivedEmail): Promise<void>
  limits?: Partial<typeof LIMITS> | undefined
}

export type InboundSmtpListener = { port: number; close(): Promise<void> }

const LIMITS = {
  messageBytes: 1_048_576,
  recipients: 20,
  connections: 200,
  connectionsOfOne: 20,
  commands: 1_000,
  /** Invalid commands and unknown recipients. With more of them, the client is only probing. */
  mistakes: 20,
  idleMs: 120_000,
  /** The longest that a connection may stay open. */
  lifeMs: 900_000,
}

export async function listenForInboundEmail(settings: InboundSmtpSettings): Promise<InboundSmtpListener> {
  const limits = { ...LIMITS, ...settings.limits }
  const sockets = new Map<Socket, { address: string; underWay?: Promise<unknown> }>()
  const server = createServer((socket) => {
    const address = plainAddress(socket.remoteAddress ?? '')
    const ofOne = [...sockets.values()].filter((it) => it.address === address).length
    socket.on('error', () => {})
    if (sockets.size >= limits.connections || ofOne >= limits.connectionsOfOne) {
      socket.end(`421 4.7.0 ${settings.name} too many connections\r\n`)
      return
    }
    const entry: { address: string; underWay?: Promise<unknown> } = { address }
    sockets.set(socket, entry)
    const life = setTimeout(() => socket.destroy(), limits.lifeMs)
    socket.on('close', () => {
      clearTimeout(life)
      sockets.delete(socket)
    })
    socket.setTimeout(limits.idleMs, () => socket.end(`421 4.4.2 ${settings.name} timeout\r\n`, () => socket.destroy()))
    const take: InboundSmtpSettings['take'] = (mail) => {
      const taken = settings.take(mail)
      entry.underWay = taken.catch(() => {})
      return taken
    }
    converse(socket, { ...settings, take, limits }).catch(() => socket.destroy())
  })
  return { port: await listen(server, settings), close }

  /**
   * Finishes and confirms emails that are being recorded. All other connections are closed; their senders will retry.
   */
  async function close() {
    server.close()
    await Promise.all(
      [...sockets].map(async ([socket, { underWay }]) => {
        if (underWay) await underWay.then(() => new Promise((resolve) => setImmediate(resolve)))
        socket.destroySoon()
      }),
    )
    for (const socket of sockets.keys()) socket.destroy()
    if (server.listening) await once(server, 'close')
  }
}

async function listen(server: Server, { host, port }: { host: string; port: number }): Promise<number> {
  server.listen({ host, port })
  await once(server, 'listening')
  server.on('error', () => {})
  return (server.address() as AddressInfo).port
}

type InboundConversation = Omit<InboundSmtpSettings, 'limits'> & { limits: typeof LIMITS }

/** Handles one command after the other, even if several arrive at once. */
async function converse(socket: Socket, { name, hasMailbox, take, limits }: InboundConversation) {
  const input: SmtpInputReader = createSmtpInputReader(socket)
  let from: string | undefined
  let to: string[] = []
  let mistakes = 0
  const say = (line: string) => {
    if (line[0] === '5') mistakes++
    socket.write(`${line}\r\n`)
  }
  const reset = () => {
    from = undefined
    to = []
  }

  say(`220 ${name} ESMTP`)
  for (let count = 1; ; count++) {
    const line = await input.line()
    if (line === undefined) break
    if (count > limits.commands || mistakes > limits.mistakes) {
      say(`421 4.7.0 ${name} too many commands`)
      break
    }
    const verb = (/^[a-z]+/i.exec(line)?.[0] ?? '').toUpperCase()
    if (verb === 'QUIT') {
      say('221 2.0.0 bye')
      break
    }
    if (verb === 'DATA') {
      if (to.length === 0) say('503 5.5.1 RCPT first')
      else {
        say('354 go ahead')
        const message = await input.message(limits.messageBytes)
        if (message === undefined) break
        if (message === 'too large') say('552 5.3.4 too large')
        else say(await taken({ from: from ?? '', to, message }))
        reset()
      }
    } else say(answer(verb, line))
  }
  socket.end()

  function answer(verb: string, line: string): string {
    if (line.length > 2_000 || line.includes('\n')) return '500 5.5.2 not understood'
    if (verb === 'EHLO' || verb === 'HELO') {
      reset()
      const extensions = [name, 'PIPELINING', `SIZE ${limits.messageBytes}`, '8BITMIME', 'SMTPUTF8']
      const words = verb === 'EHLO' ? [...extensions, 'ENHANCEDSTATUSCODES'] : [name]
      return words.map((word, i) => `250${i === words.length - 1 ? ' ' : '-'}${word}`).join('\r\n')
    }
    if (verb === 'NOOP') return '250 2.0.0 ok'
    if (verb === 'RSET') {
      reset()
      return '250 2.0.0 ok'
    }
    if (verb === 'VRFY') return '252 2.1.5 cannot say'
    if (verb === 'MAIL') return begin(line)
    if (verb === 'RCPT') return address(line)
    return '502 5.5.1 not known here'
  }

  function begin(line: string): string {
    const [, address, parameters = ''] = /^mail from:\s*<([^<>]*)>(.*)$/i.exec(line) ?? []
    if (from !== undefined) return '503 5.5.1 one message at a time'
    if (address === undefined) return '501 5.1.7 not an address'
    if (Number(/ size=(\d{1,15})/i.exec(parameters)?.[1] ?? 0) > limits.messageBytes) return '552 5.3.4 too large'
    from = address
    return '250 2.1.0 ok'
  }

  function address(line: string): string {
    const [, address] = /^rcpt to:\s*<([^<>]+)>/i.exec(line) ?? []
    if (from === undefined) return '503 5.5.1 MAIL first'
    if (address === undefined) return '501 5.1.3 not an address'
    if (to.length >= limits.recipients) return '452 4.5.3 too many recipients'
    if (!hasMailbox(address)) return '550 5.1.1 no such mailbox here'
    to.push(address)
    return '250 2.1.5 ok'
  }

  async function taken(mail: ReceivedEmail): Promise<string> {
    try {
      await take(mail)
      return '250 2.0.0 taken'
    } catch {
      return '451 4.3.0 try again later'
    }
  }
}
