import { once } from 'node:events'
import { connect } from 'node:net'
import type { FirstKeys } from './launch.ts'

/** A request that the server has taken on and cannot answer yet, because its body is still to come. */
export async function halfSent(url: string, { appId, appKey }: FirstKeys, name: string) {
  const body = JSON.stringify({ identity: { external_id: name } })
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname).setEncoding('utf8')
  let answer = ''
  socket.on('data', (text) => (answer += text))
  socket.write(
    `POST /apps/${appId}/users HTTP/1.1\r\nHost: ${hostname}\r\nConnection: close\r\nAuthorization: Key ${appKey}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`,
  )
  // "100 Continue": the headers were read.
  await once(socket, 'data')
  answer = ''
  return {
    async finish(): Promise<string> {
      socket.write(body)
      await once(socket, 'close')
      return answer
    },
  }
}
