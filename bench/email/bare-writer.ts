// The reference for the whole send: writes the same bytes again and again, and knows nothing but when it may go on. Each connection
// hands over a mail and asks for the next in one breath. A process of its own.

import { connect } from 'node:net'

export type Order = { port: number; mails: number; connections: number; mail: string }
export type Written = { perSecond: number }

const ENVELOPE = 'MAIL FROM:<bounces@news.example.com> SIZE=10000\r\nRCPT TO:<somebody@gmail.com>\r\nDATA\r\n'

function write({ port, mails, connections, mail }: Order): Promise<unknown> {
  const first = Buffer.from(ENVELOPE)
  const last = Buffer.concat([Buffer.from(mail, 'latin1'), Buffer.from('\r\n.\r\n')])
  const next = Buffer.concat([last, first])
  let left = mails
  const one = () =>
    new Promise<void>((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true })
      let text = ''
      let isGreeted = false
      socket.on('error', reject)
      socket.on('close', () => resolve())
      socket.on('data', (chunk) => {
        text += chunk.toString('latin1')
        if (!isGreeted) {
          if (!text.startsWith('220') || !text.endsWith('\r\n')) return
          isGreeted = true
          text = ''
          if (left-- > 0) socket.write(first)
          else socket.end('QUIT\r\n')
          return
        }
        // Only this reply is waited for: it comes after those to the last mail and to the new envelope.
        if (!text.includes('354 ')) {
          if (text.includes('221 ')) socket.end()
          return
        }
        text = ''
        if (left > 0) {
          left--
          socket.write(next)
        } else socket.write(Buffer.concat([last, Buffer.from('QUIT\r\n')]))
      })
    })
  return Promise.all(Array.from({ length: connections }, one))
}

process.on('message', async (order: Order) => {
  const began = performance.now()
  await write(order)
  process.send?.({ perSecond: (order.mails * 1_000) / (performance.now() - began) } satisfies Written)
})
