// A connection over which mails are handed to a server (RFC 5321; PIPELINING 2920, SIZE 1870, 8BITMIME 6152, SMTPUTF8 6531,
// DSN 3461).

import type { Address } from './address.ts'
import { type OpenSettings, openSession, type Session, type Unopened } from './open-session.ts'
import type { Reply } from './reply.ts'
import { Lost } from './talk.ts'
import type { Wire } from './wire.ts'

export type Envelope = {
  /** Undefined: bounces go to nobody. */
  from: Address | undefined
  to: Address
  bcc: readonly Address[]
  /** Comes back in reports; empty for none. */
  id: string
  /** An address in it, or in the headers of the mail, is not ASCII. */
  isUtf8: boolean
}

export type Stage = 'mail' | 'rcpt' | 'data' | 'message'

export type Exchange =
  | { kind: 'taken'; reply: Reply }
  | { kind: 'refused'; at: Stage; reply: Reply }
  /** Nothing that this server could take; it was not asked. */
  | { kind: 'unfit'; reason: string }
  /** No reply that says what became of it. Only when all was written, final dot included, may it have been taken. */
  | { kind: 'lost'; reason: string; isWritten: boolean; isUnheard: boolean }

export type Connection = {
  /** One at a time. Never rejects. */
  deliver(envelope: Envelope, message: Wire): Promise<Exchange>
  isOpen(): boolean
  quit(): Promise<void>
}

export type ConnectionSettings = OpenSettings & {
  /** How long a server may take over a mail that it has got. Long, because what we do not hear of may have arrived. */
  takenMs?: number | undefined
}

const TAKEN_MS = 300_000
const QUIT_MS = 2_000

export async function openConnection(settings: ConnectionSettings): Promise<Connection | Unopened> {
  const session = await openSession(settings)
  return 'stage' in session ? session : connectionOf(session, settings.takenMs ?? TAKEN_MS)
}

const GO_AHEAD = 354
const GOODBYE = 421
const DATA: [Stage, command: string, wanted: number] = ['data', 'DATA', GO_AHEAD]
/** By its first digit, as RFC 5321 wants it read. */
const isLike = (code: number, wanted: number) => Math.floor(code / 100) === Math.floor(wanted / 100)

function connectionOf({ talk, extensions }: Session, takenMs: number): Connection {
  const isPipelining = extensions.has('PIPELINING')
  /** A transaction was begun and not ended. */
  let isBegun = false

  /** Replies to as many as were asked; to fewer where one is refused, and the server wants them one by one or hangs up. */
  async function ask(progress: Progress, ...commands: string[]): Promise<Reply[]> {
    const replies: Reply[] = []
    const listen = async () => {
      const reply = await talk.reply()
      progress.isHeard = true
      replies.push(reply)
      return reply
    }
    if (!isPipelining)
      for (const command of commands) {
        talk.write(`${command}\r\n`)
        if ((await listen()).code >= 400) break
      }
    else {
      talk.write(commands.map((command) => `${command}\r\n`).join(''))
      const heard = await Promise.allSettled(commands.map(listen))
      const lost = heard.find((it) => it.status === 'rejected')
      if (lost && !replies.some(({ code }) => code >= 400)) throw lost.reason
    }
    return replies
  }

  async function exchange(envelope: Envelope, message: Wire, progress: Progress): Promise<Exchange> {
    // With further recipients the data waits until the first one was taken: without it none of them gets anything.
    const isAtOnce = isPipelining && envelope.bcc.length === 0
    const steps: [Stage, command: string, wanted: number][] = [
      ...(isBegun ? [['mail', 'RSET', 250] as [Stage, string, number]] : []),
      ['mail', mailCommand(envelope, message.length, extensions), 250],
      ['rcpt', rcptCommand(envelope.to, extensions), 250],
      ...(isAtOnce ? [DATA] : []),
    ]
    isBegun = true
    const replies = await ask(progress, ...steps.map(([, command]) => command))
    const wrong = replies.findIndex(({ code }, n) => !isLike(code, steps[n]?.[2] ?? 0))
    if (wrong >= 0) {
      // Data is waited for all the same, although nobody is to get it: an end to it.
      if (replies.at(-1)?.code === GO_AHEAD) await endData()
      return { kind: 'refused', at: steps[wrong]?.[0] ?? 'mail', reply: replies[wrong] as Reply }
    }
    for (const address of envelope.bcc) await ask(progress, rcptCommand(address, extensions))
    if (!isAtOnce) {
      const [reply] = (await ask(progress, DATA[1])) as [Reply]
      if (reply.code !== GO_AHEAD) return { kind: 'refused', at: 'data', reply }
    }
    talk.write(Buffer.concat([message, END]), () => {
      progress.isWritten = true
    })
    const reply = await talk.reply(takenMs)
    isBegun = false
    // Refused before it was all there: the rest of it must not be taken for commands.
    if (!isLike(reply.code, 250) && !progress.isWritten) talk.end('connection lost')
    return isLike(reply.code, 250) ? { kind: 'taken', reply } : { kind: 'refused', at: 'message', reply }
  }

  async function endData() {
    talk.write(END)
    await talk.reply().catch(() => {})
  }

  return {
    async deliver(envelope, message) {
      const unfit = findUnfit(envelope, message.length, extensions)
      if (unfit !== undefined) return { kind: 'unfit', reason: unfit }
      const progress: Progress = { isWritten: false, isHeard: false }
      try {
        const result = await exchange(envelope, message, progress)
        if ('reply' in result && result.reply.code === GOODBYE) talk.end('connection lost')
        // A refusal that is none: of what follows nobody could say what it answers.
        if (result.kind === 'refused' && result.reply.code < 400) throw new Lost('answer not understood')
        return result
      } catch (error) {
        talk.end('connection lost')
        const reason = error instanceof Lost ? error.message : 'connection lost'
        return { kind: 'lost', reason, isWritten: progress.isWritten, isUnheard: !progress.isHeard }
      }
    },
    isOpen: talk.isOpen,
    async quit() {
      talk.write('QUIT\r\n')
      await talk.reply(QUIT_MS).catch(() => {})
      talk.end('closed')
    },
  }
}

type Progress = { isWritten: boolean; isHeard: boolean }

const END = Buffer.from('.\r\n')

function findUnfit({ isUtf8 }: Envelope, size: number, extensions: Session['extensions']): string | undefined {
  if (isUtf8 && !extensions.has('SMTPUTF8')) return 'address not supported'
  const most = Number(extensions.get('SIZE') ?? 0)
  return most > 0 && size > most ? 'message too large' : undefined
}

function mailCommand({ from, id, isUtf8 }: Envelope, size: number, extensions: Session['extensions']): string {
  const parameters = [
    extensions.has('SIZE') ? `SIZE=${size}` : '',
    isUtf8 ? 'BODY=8BITMIME SMTPUTF8' : '',
    extensions.has('DSN') ? 'RET=HDRS' : '',
    extensions.has('DSN') && id !== '' ? `ENVID=${xtext(id)}` : '',
  ]
  return [`MAIL FROM:<${from?.text ?? ''}>`, ...parameters.filter((it) => it !== '')].join(' ')
}

function rcptCommand({ text, isUtf8 }: Address, extensions: Session['extensions']): string {
  if (!extensions.has('DSN')) return `RCPT TO:<${text}>`
  return `RCPT TO:<${text}> NOTIFY=FAILURE,DELAY ORCPT=${isUtf8 ? `utf-8;${text}` : `rfc822;${xtext(text)}`}`
}

/** RFC 3461, 4: printable ASCII without "+" and "=". */
const xtext = (text: string) =>
  text.replaceAll(/[^!-*,-<>-~]/g, (it) => `+${it.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`)
