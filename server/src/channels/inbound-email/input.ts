// Reads the bytes of an SMTP connection as lines or as a message. Only CR LF ends a line, so that no two readers of the
// same bytes can see different messages in them.

import type { Socket } from 'node:net'

export type SmtpInputReader = {
  /** Returns undefined at the end of the connection, and for a line that is longer than any command. */
  line(): Promise<string | undefined>
  /**
   * Reads up to the line with a single dot. A message that is too large is read to its end and discarded. Returns
   * undefined if the connection ends first.
   */
  message(mostBytes: number): Promise<Buffer | 'too large' | undefined>
}

const MOST_LINE = 4_096
const MOST_PIECES = 1_000
const END = '\r\n.\r\n'

export function createSmtpInputReader(socket: Socket): SmtpInputReader {
  const chunks = socket.iterator() as AsyncIterator<Buffer>
  let rest: Buffer = Buffer.alloc(0)
  const next = async (): Promise<Buffer | undefined> => {
    const { value, done } = await chunks.next()
    return done ? undefined : value
  }

  return {
    async line() {
      for (;;) {
        const end = rest.indexOf('\r\n')
        if (end >= 0) {
          const line = rest.subarray(0, end).toString('utf8')
          rest = rest.subarray(end + 2)
          return line
        }
        if (rest.length > MOST_LINE) return undefined
        const chunk = await next()
        if (!chunk) return undefined
        rest = Buffer.concat([rest, chunk])
      }
    },
    async message(mostBytes) {
      // Begins with a line end, so that the end of an empty message is found like any other.
      let pieces: Buffer[] = [Buffer.from('\r\n')]
      let tail: Buffer = Buffer.from('\r\n')
      let bytes = 0
      for (let chunk: Buffer | undefined = rest; chunk; chunk = await next()) {
        // The end mark may be split across two chunks.
        const searched = Buffer.concat([tail, chunk])
        const end = searched.indexOf(END)
        if (end >= 0) {
          rest = searched.subarray(end + END.length)
          if (bytes + end > mostBytes) return 'too large'
          const whole = Buffer.concat([...pieces, chunk])
          return withoutDots(whole.subarray(0, whole.length - searched.length + end + 2))
        }
        tail = searched.subarray(-4)
        bytes += chunk.length
        if (bytes > mostBytes) pieces = []
        else pieces.push(chunk)
        // A sender that sends byte by byte would cause one object per byte.
        if (pieces.length > MOST_PIECES) pieces = [Buffer.concat(pieces)]
      }
      return undefined
    },
  }
}

/** Removes the second dot from lines that begin with two. */
const withoutDots = (message: Buffer) =>
  Buffer.from(message.toString('latin1').replaceAll('\r\n..', '\r\n.').slice(2), 'latin1')
