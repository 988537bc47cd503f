// A process that does nothing but hold an embedded PostgreSQL, for tests that kill it or run it as somebody else.
// Says {"pid"} of PostgreSQL, or {"refused"} with the operator's line, on standard output.

import { createLog } from '../src/lib/log.ts'
import { EmbeddedError, startEmbedded } from '../src/storage/embedded.ts'

const [, , dataDir = ''] = process.argv
try {
  const server = await startEmbedded({ dataDir, log: createLog('silent'), settings: { fsync: 'off' } })
  process.on('SIGTERM', () => void server.stop().then(() => process.exit(0)))
  console.log(JSON.stringify({ pid: server.pid() }))
} catch (error) {
  if (!(error instanceof EmbeddedError)) throw error
  console.log(JSON.stringify({ refused: error.message }))
}
