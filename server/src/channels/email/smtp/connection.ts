// A connection that hands emails to a server (RFC 5321; PIPELINING 2920, SIZE 1870, 8BITMIME 6152, SMTPUTF8 6531, DSN
// 3461).

import type { EmailAddress } from '../address.ts'
import { toByteString, type WireText } from '../mime/wire-format.ts'
import { SmtpConnectionLost } from './dialog.ts'
import { openSmtpSession, type SessionFailure, type SmtpSession, type SmtpSessionSettings } from './open-session.ts'
import type { SmtpReply } from './reply.ts'

export type SmtpEnvelope = {
  /** Undefined if bounces go nowhere. */
  from: EmailAddress | undefined
  to: EmailAddress
  bcc: readonly EmailAddress[]
  /** An id that reports return; empty if there is none. */
  id: string
  /** An address in the envelope or in the headers is not ASCII. */
  isUtf8: boolean
}

export type TransactionStage = 'mail' | 'rcpt' | 'data' | 'message'

export type TransactionResult =
  | { kind: 'taken'; reply: SmtpReply }
  | { kind: 'refused'; at: TransactionStage; reply: SmtpReply }
  /** The server cannot accept this email, as its extensions show; nothing was sent to it. */
  | { kind: 'unfit'; reason: string }
  /**
   * No reply says what became of the email. It can only have been accepted if everything was written, including the
   * final dot.
   */
  | { kind: 'lost'; reason: string; isWritten: boolean; isUnheard: boolean }

/** `files` follow the message, and are part of it. */
export type SmtpTransaction = { envelope: SmtpEnvelope; message: WireText; files?: readonly Buffer[] }

export type SmtpConnection = {
  /**
   * Delivers one email at a time. Never rejects. `follow` is called when the email is about to be written, and returns
   * the one to deliver next: if the server permits, its envelope is sent in the same write.
   */
  deliver(mail: SmtpTransaction, follow?: () => SmtpTransaction | undefined): Promise<TransactionResult>
  isOpen(): boolean
  quit(): Promise<void>
}

export type SmtpConnectionSettings = SmtpSessionSettings & {
  /**
   * How long a server may take to confirm an email that it has received. This is long, because an email without a
   * confirmation may have been accepted.
   */
  takenMs?: number | undefined
}

const TAKEN_MS = 300_000
/**
 * When an email is written, nothing else of ours is on its way. An email of up to this size is handed to the operating
 * system completely or not at all, so it counts as written from then on, although the envelope that follows it could be
 * cut off. A larger email is written without a following envelope.
 */
const MOST_TOGETHER = 48 * 1024
const QUIT_MS = 2_000

export async function openSmtpConnection(settings: SmtpConnectionSettings): Promise<SmtpConnection | SessionFailure> {
  const session = await openSmtpSession(settings)
  return 'stage' in session ? session : connectionOf(session, settings.takenMs ?? TAKEN_MS)
}

const GO_AHEAD = 354
const GOODBYE = 421
const DATA: EnvelopeStep = ['data', 'DATA', GO_AHEAD]
/** Compares only the first digit, as RFC 5321 requires. */
const isLike = (code: number, wanted: number) => Math.floor(code / 100) === Math.floor(wanted / 100)

function connectionOf({ dialog, extensions }: SmtpSession, takenMs: number): SmtpConnection {
  const isPipelining = extensions.has('PIPELINING')
  /** A transaction was begun and not ended. */
  let isBegun = false

  /** The envelope of the next email, if it was sent already. */
  let begun: { mail: SmtpTransaction; opening: StartedEnvelope } | undefined

  /**
   * Sends commands and returns their replies. There are fewer replies than commands if one is refused and the server
   * takes commands one by one, or if it hangs up.
   */
  async function ask(progress: TransactionProgress, ...commands: string[]): Promise<SmtpReply[]> {
    if (isPipelining) {
      dialog.write(linesOf(commands))
      return hear(progress, commands.length)
    }
    const replies: SmtpReply[] = []
    for (const command of commands) {
      dialog.write(linesOf([command]))
      const reply = await dialog.reply()
      progress.isHeard = true
      replies.push(reply)
      if (reply.code >= 400) break
    }
    return replies
  }

  async function hear(progress: TransactionProgress, count: number): Promise<SmtpReply[]> {
    const { replies, lost } = await dialog.replies(count)
    if (replies.length > 0) progress.isHeard = true
    if (lost && !replies.some(({ code }) => code >= 400)) throw lost
    return replies
  }

  function stepsFor(mail: SmtpTransaction): EnvelopeStep[] {
    const { envelope } = mail
    return [
      ...(isBegun ? [['mail', 'RSET', 250] as EnvelopeStep] : []),
      ['mail', mailCommand(envelope, sizeOf(mail), extensions), 250],
      ['rcpt', rcptCommand(envelope.to, extensions), 250],
      ...(isAtOnce(envelope) ? [DATA] : []),
    ]
  }

  /**
   * With BCC recipients, DATA waits until the first recipient was accepted: if that one is refused, none of the others
   * gets the email.
   */
  const isAtOnce = ({ bcc }: SmtpEnvelope) => isPipelining && bcc.length === 0

  /** If the envelope was sent together with the previous email, only its replies are still to come. */
  function open(mail: SmtpTransaction): StartedEnvelope {
    if (begun?.mail === mail) return begun.opening
    const steps = stepsFor(mail)
    const progress: TransactionProgress = { isWritten: false, isHeard: false }
    isBegun = true
    return { steps, progress, replies: ask(progress, ...steps.map(([, command]) => command)) }
  }

  async function exchange(
    mail: SmtpTransaction,
    { steps, progress, replies: asked }: StartedEnvelope,
    follow: NextTransaction,
  ): Promise<TransactionResult> {
    const { envelope } = mail
    const replies = await asked
    const wrong = replies.findIndex(({ code }, n) => !isLike(code, steps[n]?.[2] ?? 0))
    if (wrong >= 0) {
      // The server waits for data although no recipient was accepted, so the data has to be ended.
      if (replies.at(-1)?.code === GO_AHEAD) await endData()
      return { kind: 'refused', at: steps[wrong]?.[0] ?? 'mail', reply: replies[wrong] as SmtpReply }
    }
    for (const address of envelope.bcc) await ask(progress, rcptCommand(address, extensions))
    if (!isAtOnce(envelope)) {
      const [reply] = (await ask(progress, DATA[1])) as [SmtpReply]
      if (reply.code !== GO_AHEAD) return { kind: 'refused', at: 'data', reply }
    }
    const { answer, flushed } = hand(mail, progress, follow)
    const reply = await answer
    // The email was refused before all of it was written. The rest must not be taken for commands.
    if (!isLike(reply.code, 250) && !flushed()) dialog.end('connection lost')
    return isLike(reply.code, 250) ? { kind: 'taken', reply } : { kind: 'refused', at: 'message', reply }
  }

  /** Writes the email, together with the envelope of the next one if there is one. */
  function hand({ message, files = [] }: SmtpTransaction, progress: TransactionProgress, follow: NextTransaction) {
    let isFlushed = false
    const isShort = files.length === 0 && message.length <= MOST_TOGETHER
    const next = isPipelining && dialog.isOpen() && isShort ? follow() : undefined
    // The final dot ends this transaction, whatever the answer.
    isBegun = false
    const isBesides = next && isAtOnce(next.envelope) && findUnfit(next, extensions) === undefined
    const steps = isBesides ? stepsFor(next) : []
    progress.isWritten = isBesides === true
    const end = END + linesOf(steps.map(([, command]) => command))
    const onWritten = () => {
      isFlushed = true
      progress.isWritten = true
    }
    if (files.length === 0) dialog.write(message + end, onWritten)
    else {
      for (const piece of [message, ...files]) dialog.write(piece)
      dialog.write(end, onWritten)
    }
    const answer = dialog.reply(takenMs)
    if (isBesides) {
      const progress: TransactionProgress = { isWritten: false, isHeard: false }
      const replies = hear(progress, steps.length)
      // The delivery of the next email handles the error.
      replies.catch(() => {})
      isBegun = true
      begun = { mail: next, opening: { steps, progress, replies } }
    }
    return { answer, flushed: () => isFlushed }
  }

  async function endData() {
    dialog.write(END)
    await dialog.reply().catch(() => {})
  }

  return {
    async deliver(mail, follow = () => undefined) {
      const unfit = findUnfit(mail, extensions)
      if (unfit !== undefined) return { kind: 'unfit', reason: unfit }
      const opening = open(mail)
      const { progress } = opening
      begun = undefined
      try {
        const result = await exchange(mail, opening, follow)
        if ('reply' in result && result.reply.code === GOODBYE) dialog.end('connection lost')
        // The code is neither acceptance nor refusal, so later replies could not be matched to commands either.
        if (result.kind === 'refused' && result.reply.code < 400) throw new SmtpConnectionLost('answer not understood')
        return result
      } catch (error) {
        dialog.end('connection lost')
        const reason = error instanceof SmtpConnectionLost ? error.message : 'connection lost'
        return { kind: 'lost', reason, isWritten: progress.isWritten, isUnheard: !progress.isHeard }
      }
    },
    isOpen: dialog.isOpen,
    async quit() {
      dialog.write('QUIT\r\n')
      await dialog.reply(QUIT_MS).catch(() => {})
      dialog.end('closed')
    },
  }
}

type TransactionProgress = { isWritten: boolean; isHeard: boolean }
type EnvelopeStep = [at: TransactionStage, command: string, wanted: number]
/** The commands that were sent before the data, and their replies. */
type StartedEnvelope = { steps: readonly EnvelopeStep[]; progress: TransactionProgress; replies: Promise<SmtpReply[]> }
type NextTransaction = () => SmtpTransaction | undefined

const linesOf = (commands: readonly string[]) => toByteString(commands.map((command) => `${command}\r\n`).join(''))

const END = '.\r\n'

const sizeOf = ({ message, files = [] }: SmtpTransaction) =>
  files.reduce((size, { length }) => size + length, message.length)

function findUnfit(mail: SmtpTransaction, extensions: SmtpSession['extensions']): string | undefined {
  const { envelope } = mail
  if (envelope.isUtf8 && !extensions.has('SMTPUTF8')) return 'address not supported'
  const most = Number(extensions.get('SIZE') ?? 0)
  return most > 0 && sizeOf(mail) > most ? 'message too large' : undefined
}

function mailCommand({ from, id, isUtf8 }: SmtpEnvelope, size: number, extensions: SmtpSession['extensions']): string {
  const parameters = [
    extensions.has('SIZE') ? `SIZE=${size}` : '',
    isUtf8 ? 'BODY=8BITMIME SMTPUTF8' : '',
    extensions.has('DSN') ? 'RET=HDRS' : '',
    extensions.has('DSN') && id !== '' ? `ENVID=${xtext(id)}` : '',
  ]
  return [`MAIL FROM:<${from?.text ?? ''}>`, ...parameters.filter((it) => it !== '')].join(' ')
}

function rcptCommand({ text, isUtf8 }: EmailAddress, extensions: SmtpSession['extensions']): string {
  if (!extensions.has('DSN')) return `RCPT TO:<${text}>`
  return `RCPT TO:<${text}> NOTIFY=FAILURE,DELAY ORCPT=${isUtf8 ? `utf-8;${text}` : `rfc822;${xtext(text)}`}`
}

/** RFC 3461, 4: printable ASCII without "+" and "=". */
const xtext = (text: string) =>
  text.replaceAll(/[^!-*,-<>-~]/g, (it) => `+${it.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`)
