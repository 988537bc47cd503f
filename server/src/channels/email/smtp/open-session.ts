// Opens an SMTP session that is ready for email: greeting, EHLO, TLS, and authentication.

import type { Socket } from 'node:net'
import { DestinationForbidden, type Dial } from '../../dial.ts'
import { openSmtpDialog, SmtpConnectionLost, type SmtpDialog } from './dialog.ts'
import type { SmtpReply } from './reply.ts'

export type SmtpSessionSettings = {
  dial: Dial
  host: string
  port: number
  /**
   * `starttls` and `implicit` require a valid certificate for the host; `opportunistic` uses whatever encryption is
   * offered.
   */
  tls: 'starttls' | 'implicit' | 'opportunistic' | 'none'
  auth?: { user: string; password: string } | undefined
  /** The name that we send in EHLO. */
  helo: string
  /** The time limit for each reply, and for connecting. */
  answerMs?: number | undefined
}

/** `extensions`: the parameters of each extension by its name. */
export type SmtpSession = { dialog: SmtpDialog; extensions: ReadonlyMap<string, string> }

/** The session could not be opened; no part of an email was sent. */
export type SessionFailure = {
  stage: 'connect' | 'greeting' | 'hello' | 'tls' | 'auth'
  reason: string
  reply?: SmtpReply
  /** A retry would end the same way: our side has to be fixed. */
  isFinal: boolean
  /** The name of the server cannot be resolved. */
  isHostUnknown?: boolean
}

const ANSWER_MS = 60_000
const PORTS = new Set([25, 465, 587, 2525])

/** A stage failed. */
class SessionError extends Error {
  readonly at: SessionFailure
  constructor(at: SessionFailure) {
    super(at.reason)
    this.at = at
  }
}

export async function openSmtpSession(settings: SmtpSessionSettings): Promise<SmtpSession | SessionFailure> {
  const result = await tryToOpen(settings)
  // The server offers TLS that does not work, so opportunistic sending falls back to an unencrypted connection.
  const isMissed = settings.tls === 'opportunistic' && 'stage' in result && result.stage === 'tls' && !settings.auth
  return isMissed ? tryToOpen({ ...settings, tls: 'none' }) : result
}

async function tryToOpen(settings: SmtpSessionSettings): Promise<SmtpSession | SessionFailure> {
  const { dial, host, tls, answerMs = ANSWER_MS } = settings
  const socket = await connect(settings, answerMs)
  if ('stage' in socket) return socket
  let dialog = openSmtpDialog(socket, answerMs)
  let stage: SessionFailure['stage'] = 'greeting'
  try {
    judge('greeting', await dialog.reply(), 220)
    stage = 'hello'
    let extensions = await greet(dialog, settings)
    let isSecret = tls === 'implicit'
    const isOffered = extensions.has('STARTTLS')
    if (tls === 'starttls' && !isOffered)
      throw new SessionError({ stage: 'tls', reason: 'encryption not offered', isFinal: true })
    if ((tls === 'starttls' || tls === 'opportunistic') && isOffered) {
      stage = 'tls'
      judge('tls', await say(dialog, 'STARTTLS'), 220)
      // Anything that followed the reply was unencrypted and could have been injected by anybody.
      dialog.release()
      const isAnybody = tls === 'opportunistic' && !settings.auth
      const secured = await dial.secure(socket, { host, timeoutMs: answerMs, acceptsAnyCertificate: isAnybody })
      dialog = openSmtpDialog(secured, answerMs)
      isSecret = true
      stage = 'hello'
      extensions = await greet(dialog, settings)
    }
    stage = 'auth'
    if (settings.auth) await signIn(dialog, extensions, settings.auth, isSecret || dial.isInAllowedNetwork(socket))
    return { dialog, extensions }
  } catch (error) {
    socket.destroy()
    dialog.end('closed')
    if (error instanceof SessionError) return error.at
    const isUntrusted = stage === 'tls' && /CERT|ALTNAME|SELF_SIGNED|VERIFY|ISSUER/.test(codeOf(error))
    if (isUntrusted) return { stage, reason: 'certificate not accepted', isFinal: true }
    return { stage, reason: error instanceof SmtpConnectionLost ? error.message : 'connection lost', isFinal: false }
  }
}

async function connect(
  { dial, host, port, tls }: SmtpSessionSettings,
  timeoutMs: number,
): Promise<Socket | SessionFailure> {
  const isTls = tls === 'implicit'
  const origin = `${isTls ? 'smtps' : 'smtp'}://${host}:${port}`
  try {
    return await dial({ host, port, isTls, origin, isPortAllowed: (port) => PORTS.has(port), timeoutMs })
  } catch (error) {
    const code = codeOf(error)
    if (error instanceof DestinationForbidden) return { stage: 'connect', reason: error.message, isFinal: true }
    if (code === 'ENOTFOUND' || (error as Error).message === 'ENOTFOUND')
      return { stage: 'connect', reason: 'name not found', isFinal: false, isHostUnknown: true }
    if (/CERT|ALTNAME|SELF_SIGNED|VERIFY|ISSUER/.test(code))
      return { stage: 'tls', reason: 'certificate not accepted', isFinal: true }
    return {
      stage: 'connect',
      reason: code === 'ECONNREFUSED' ? 'connection refused' : 'not connected',
      isFinal: false,
    }
  }
}

const codeOf = (error: unknown) => (error as { code?: string }).code ?? ''

function say(dialog: SmtpDialog, command: string): Promise<SmtpReply> {
  dialog.write(`${command}\r\n`)
  return dialog.reply()
}

function judge(stage: SessionFailure['stage'], reply: SmtpReply, wanted: number) {
  if (reply.code === wanted) return
  const reason = stage === 'auth' ? 'credentials refused' : 'refused by the server'
  throw new SessionError({ stage, reason, reply, isFinal: reply.code >= 500 })
}

async function greet(dialog: SmtpDialog, { helo }: SmtpSessionSettings): Promise<Map<string, string>> {
  const name = /^[\w.:[\]-]{1,255}$/.test(helo) ? helo : 'localhost'
  const reply = await say(dialog, `EHLO ${name}`)
  if (reply.code >= 500) {
    // The server is too old to know extensions.
    judge('hello', await say(dialog, `HELO ${name}`), 250)
    return new Map()
  }
  judge('hello', reply, 250)
  return new Map(
    reply.lines.slice(1).map((line) => {
      const [keyword = '', ...parameters] = line.trim().split(/[ =]+/)
      return [keyword.toUpperCase(), parameters.join(' ')]
    }),
  )
}

async function signIn(
  dialog: SmtpDialog,
  extensions: ReadonlyMap<string, string>,
  { user, password }: { user: string; password: string },
  isAllowed: boolean,
) {
  if (!isAllowed) throw new SessionError({ stage: 'auth', reason: 'no credentials without encryption', isFinal: true })
  const ways = (extensions.get('AUTH') ?? '').toUpperCase().split(' ')
  const inBase64 = (text: string) => Buffer.from(text).toString('base64')
  if (ways.includes('PLAIN')) judge('auth', await say(dialog, `AUTH PLAIN ${inBase64(`\0${user}\0${password}`)}`), 235)
  else if (ways.includes('LOGIN')) {
    judge('auth', await say(dialog, 'AUTH LOGIN'), 334)
    judge('auth', await say(dialog, inBase64(user)), 334)
    judge('auth', await say(dialog, inBase64(password)), 235)
  } else throw new SessionError({ stage: 'auth', reason: 'no way to sign in', isFinal: true })
}
