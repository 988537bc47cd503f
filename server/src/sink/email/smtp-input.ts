// Reads the bytes of a connection as lines or as a message.

import type { Socket } from 'node:net'

export type SmtpInput = {
  /** Returns undefined at the end of the connection. */
  line(): Promise<string | undefined>
  /** Reads up to the line with a single dot, and removes the second dot from lines that begin with two. */
  message(mostBytes: number): Promise<Buffer | 'too large' | undefined>
  /** Waits until there is something to read. */
  some(): Promise<void>
  /** Hands the socket over to another reader, and discards what has arrived. */
  release(): void
}

const MOST_LINE = 12_288
const MOST_BUFFERED = 1_048_576

export function readSmtp(socket: Socket): SmtpInput {
  let rest: Buffer = Buffer.alloc(0)
  const chunks: Buffer[] = []
  let buffered = 0
  let isEnded = false
  let wake: (() => void) | undefined

  const onData = (chunk: Buffer) => {
    chunks.push(chunk)
    buffered += chunk.length
    if (buffered > MOST_BUFFERED) socket.pause()
    wake?.()
  }
  const onEnd = () => {
    isEnded = true
    wake?.()
  }
  socket.on('data', onData).on('end', onEnd).on('close', onEnd)

  async function more(): Promise<boolean> {
    while (chunks.length === 0) {
      if (isEnded) return false
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
    rest = Buffer.concat([rest, ...chunks.splice(0)])
    buffered = 0
    socket.resume()
    return true
  }

  return {
    async line() {
      for (let end = rest.indexOf('\r\n'); ; end = rest.indexOf('\r\n')) {
        if (end >= 0) {
          const line = rest.subarray(0, end).toString('utf8')
          rest = rest.subarray(end + 2)
          return line
        }
        if (rest.length > MOST_LINE || !(await more())) return undefined
      }
    },
    async message(mostBytes) {
      // Added so that the end of an empty message is found like any other.
      rest = Buffer.concat([Buffer.from('\r\n'), rest])
      let isTooLarge = false
      for (let from = 0; ; ) {
        const end = rest.indexOf('\r\n.\r\n', from)
        if (end >= 0) {
          const message = rest
            .subarray(0, end + 2)
            .toString('latin1')
            .replaceAll('\r\n..', '\r\n.')
            .slice(2)
          rest = rest.subarray(end + 5)
          return isTooLarge ? 'too large' : Buffer.from(message, 'latin1')
        }
        if (rest.length > mostBytes) {
          isTooLarge = true
          rest = rest.subarray(-4)
        }
        from = Math.max(0, rest.length - 4)
        if (!(await more())) return undefined
      }
    },
    async some() {
      if (rest.length === 0) await more()
    },
    release() {
      socket.off('data', onData).off('end', onEnd).off('close', onEnd)
      rest = Buffer.alloc(0)
    },
  }
}
