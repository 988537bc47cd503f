// The dialog with a mail server on one connection: commands, and the replies to them in order. It ends once, for any
// reason.

import type { Socket } from 'node:net'
import { createSmtpReplyParser, type SmtpReply } from './reply.ts'

/** The connection ended, or the server sent something that cannot be parsed, before a reply arrived. */
export class SmtpConnectionLost extends Error {}

export type SmtpDialog = {
  /** A string has one character for each byte. */
  write(bytes: string | Buffer, onWritten?: () => void): void
  /** The next reply that no earlier call waits for. Rejects with `SmtpConnectionLost`. */
  reply(withinMs?: number): Promise<SmtpReply>
  /**
   * The same for several replies, with the time limit applied to each. Returns fewer if the connection is lost first,
   * with `lost` set.
   */
  replies(count: number, withinMs?: number): Promise<ReceivedReplies>
  isOpen(): boolean
  end(reason: string): void
  /** Hands the socket over to another reader. Data that is not a complete reply yet is discarded. */
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
    // A reply without a command is usually a goodbye after an idle period. Replies that follow could not be matched to
    // commands.
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

  /** Watches the time limit of the pending reply. It is not extended when bytes arrive one by one. */
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
    // Deferred, so that the callbacks of pending writes first report whether each was written.
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
