// Loaded into a server before anything else: tells each port that it listens on.
import { Server } from 'node:net'

const { listen } = Server.prototype
Server.prototype.listen = function listenAndTell(...args) {
  const port = typeof args[0] === 'object' ? args[0]?.port : args[0]
  if (port !== undefined) process.stdout.write(`listening: ${port}\n`)
  return listen.apply(this, args)
}
