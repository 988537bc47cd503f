// One connection to a mail server: what is asked, and the replies to it, in their order. It ends once, for whatever reason.

import type { Socket } from 'node:net'
import { createReplyReader, type Reply } from './reply.ts'

/** The connection ended, or the server said what cannot be understood, before there was a reply. */
export class Lost extends Error {}

export type Talk = {
  write(bytes: string | Buffer, onWritten?: () => void): void
  /** The next reply that nobody waits for yet. Rejects with `Lost`. */
  reply(withinMs?: number): Promise<Reply>
  isOpen(): boolean
  end(reason: string): void
  /** Leaves the socket to somebody else. What has come and was no whole reply yet is forgotten with this. */
  release(): void
}

type Waiting = { withinMs: number; resolve(reply: Reply): void; reject(error: Lost): void }

export function openTalk(socket: Socket, answerMs: number): Talk {
  const waiting: Waiting[] = []
  let ended: Lost | undefined
  let timer: NodeJS.Timeout | undefined

  const reader = createReplyReader((reply) => {
    const first = waiting.shift()
    // Nobody asked: mostly a goodbye after a time without mail. Of what follows nobody could say what it answers.
    if (!first) return end('connection lost')
    watch()
    first.resolve(reply)
  })
  const onData = (chunk: Buffer) => {
    if (!reader.feed(chunk)) end('answer not understood')
  }
  const onEnd = () => end('connection lost')
  socket.on('data', onData).on('error', onEnd).on('end', onEnd).on('close', onEnd)

  /** For the reply that is due: bytes that come one by one do not make it later. */
  function watch() {
    clearTimeout(timer)
    const [first] = waiting
    if (first) timer = setTimeout(() => end('timeout'), first.withinMs)
  }

  function end(reason: string) {
    if (ended) return
    ended = new Lost(reason)
    clearTimeout(timer)
    socket.destroy()
    // Its writes are told apart first, into those that were made and those that were not.
    setImmediate(() => {
      for (const { reject } of waiting.splice(0)) reject(ended as Lost)
    })
  }

  return {
    write(bytes, onWritten) {
      if (!ended) socket.write(bytes, (error) => void (!error && onWritten?.()))
    },
    reply(withinMs = answerMs) {
      return new Promise((resolve, reject) => {
        if (ended) return reject(ended)
        waiting.push({ withinMs, resolve, reject })
        if (waiting.length === 1) watch()
      })
    },
    isOpen: () => !ended,
    end,
    release() {
      socket.off('data', onData).off('error', onEnd).off('end', onEnd).off('close', onEnd)
      clearTimeout(timer)
    },
  }
}
