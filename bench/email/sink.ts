// The other side: a mail server that takes everything, and costs as little as it can. A process of its own, so that its work is
// nobody's. Asked, it tells how many it took, when the last of them came, and that one as it was.

import { type AddressInfo, createServer } from 'node:net'
import { moment } from '../kit/moment.ts'

export type SinkStarted = { port: number }
export type SinkSeen = { taken: number; lastMs: number; mail: string }

const OFFERS = '250-sink\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250 SIZE 50000000\r\n'

const seen: SinkSeen = { taken: 0, lastMs: 0, mail: '' }

const server = createServer((socket) => {
  let isData = false
  let rest = ''
  socket.setNoDelay(true)
  socket.on('error', () => {})
  socket.write('220 sink ESMTP\r\n')
  socket.on('data', (chunk) => {
    rest += chunk.toString('latin1')
    let answers = ''
    for (;;) {
      const end = rest.indexOf(isData ? '\r\n.\r\n' : '\r\n')
      if (end < 0) break
      const line = rest.slice(0, end)
      rest = rest.slice(end + (isData ? 5 : 2))
      if (isData) {
        isData = false
        seen.taken++
        seen.lastMs = moment()
        seen.mail = line
        answers += '250 2.0.0 queued\r\n'
      } else if (line.startsWith('EHLO')) answers += OFFERS
      else if (line === 'DATA') {
        isData = true
        answers += '354 go\r\n'
      } else if (line === 'QUIT') {
        socket.end('221 bye\r\n')
        return
      } else answers += '250 2.1.0 ok\r\n'
    }
    if (answers !== '') socket.write(answers)
  })
})
server.listen(0, '127.0.0.1', () =>
  process.send?.({ port: (server.address() as AddressInfo).port } satisfies SinkStarted),
)
process.on('message', () => process.send?.(seen))
