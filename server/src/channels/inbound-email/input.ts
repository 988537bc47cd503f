// The bytes of an SMTP connection, read as lines or as a message. A line ends with CR LF and nothing else, so that no two
// readers of the same bytes can see different messages in them.

import type { Socket } from 'node:net'

export type SmtpInputReader = {
  /** Undefined at the end of the connection, and for a line that is longer than any command. */
  line(): Promise<string | undefined>
  /** Up to the line with a single dot; one that is too large is read to its end and dropped. Undefined when it has no end. */
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
      // Begins with the end of a line, so that a message without any ends like the others.
      let pieces: Buffer[] = [Buffer.from('\r\n')]
      let tail: Buffer = Buffer.from('\r\n')
      let bytes = 0
      for (let chunk: Buffer | undefined = rest; chunk; chunk = await next()) {
        // The end may lie across two pieces.
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
        // Whoever sends byte by byte would have each kept in an object of its own.
        if (pieces.length > MOST_PIECES) pieces = [Buffer.concat(pieces)]
      }
      return undefined
    },
  }
}

/** Dots that begin a line were doubled. */
const withoutDots = (message: Buffer) =>
  Buffer.from(message.toString('latin1').replaceAll('\r\n..', '\r\n.').slice(2), 'latin1')
