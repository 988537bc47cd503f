// One connection to a mail server: what is asked, and the replies to it, in their order. It ends once, for whatever reason.

import type { Socket } from 'node:net'
import { createSmtpReplyParser, type SmtpReply } from './reply.ts'

/** The connection ended, or the server said what cannot be understood, before there was a reply. */
export class SmtpConnectionLost extends Error {}

export type SmtpDialog = {
  /** Text has one character for each byte. */
  write(bytes: string | Buffer, onWritten?: () => void): void
  /** The next reply that nobody waits for yet. Rejects with `SmtpConnectionLost`. */
  reply(withinMs?: number): Promise<SmtpReply>
  /** The same for several, each of which may take as long as one; fewer of them where the connection is `lost` before. */
  replies(count: number, withinMs?: number): Promise<ReceivedReplies>
  isOpen(): boolean
  end(reason: string): void
  /** Leaves the socket to somebody else. What has come and was no whole reply yet is forgotten with this. */
  release(): void
}

export type ReceivedReplies = { replies: SmtpReply[]; lost?: SmtpConnectionLost }

type PendingReplies = { count: number; withinMs: number; replies: SmtpReply[]; settle(heard: ReceivedReplies): void }

export function openSmtpDialog(socket: Socket, answerMs: number): SmtpDialog {
  const waiting: PendingReplies[] = []
  let ended: SmtpConnectionLost | undefined
  let timer: { of: NodeJS.Timeout; ms: number } | undefined

  const reader = createSmtpReplyParser((reply) => {
    const [first] = waiting
    // Nobody asked: mostly a goodbye after a time without mail. Of what follows nobody could say what it answers.
    if (!first) return end('connection lost')
    first.replies.push(reply)
    if (first.replies.length < first.count) return watch()
    waiting.shift()
    watch()
    first.settle(first)
  })
  const onData = (chunk: Buffer) => {
    if (!reader.feed(chunk)) end('answer not understood')
  }
  const onEnd = () => end('connection lost')
  socket.on('data', onData).on('error', onEnd).on('end', onEnd).on('close', onEnd)

  /** For the reply that is due: bytes that come one by one do not make it later. */
  function watch() {
    const ms = waiting[0]?.withinMs
    if (timer && timer.ms === ms) return void timer.of.refresh()
    unwatch()
    if (ms !== undefined) timer = { of: setTimeout(() => end('timeout'), ms), ms }
  }

  function unwatch() {
    clearTimeout(timer?.of)
    timer = undefined
  }

  function end(reason: string) {
    if (ended) return
    ended = new SmtpConnectionLost(reason)
    unwatch()
    socket.destroy()
    // Its writes are told apart first, into those that were made and those that were not.
    setImmediate(() => {
      for (const { replies, settle } of waiting.splice(0)) settle({ replies, lost: ended as SmtpConnectionLost })
    })
  }

  const replies = (count: number, withinMs = answerMs) =>
    new Promise<ReceivedReplies>((settle) => {
      if (ended) return settle({ replies: [], lost: ended })
      waiting.push({ count, withinMs, replies: [], settle })
      if (waiting.length === 1) watch()
    })

  return {
    write(bytes, onWritten) {
      if (!ended) socket.write(bytes, 'latin1', onWritten && ((error) => void (!error && onWritten())))
    },
    async reply(withinMs) {
      const {
        replies: [reply],
        lost,
      } = await replies(1, withinMs)
      if (!reply) throw lost
      return reply
    },
    replies,
    isOpen: () => !ended,
    end,
    release() {
      socket.off('data', onData).off('error', onEnd).off('end', onEnd).off('close', onEnd)
      unwatch()
    },
  }
}
