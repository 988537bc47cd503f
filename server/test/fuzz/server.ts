// A server in a process of its own that tells how long its event loop was blocked.

import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type FirstKeys, launch, PROJECT, printedKeys } from '../process/launch.ts'

const LOOP_DELAY = fileURLToPath(new URL('./loop-delay.ts', import.meta.url))

export type LoopDelay = { blockMs: number; processorMs: number }

export type FuzzedServer = {
  url: string
  keys: FirstKeys
  /** Since this was last asked: the longest block of the event loop, and the processor time of its thread. */
  loopDelay(): Promise<LoopDelay>
}

export async function startFuzzedServer(): Promise<FuzzedServer> {
  const server = await launch({
    command: [process.execPath, '--import', LOOP_DELAY, join(PROJECT, 'server/run.mjs'), 'main'],
    options: { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] },
    // Only answers requests: nothing is sent, and nobody is asked for DNS.
    env: { LIMITS: 'off', ROLE: 'api', RESOLVER: '127.0.0.1:1' },
  })
  const url = await server.ready()
  return {
    url,
    keys: printedKeys(server.out()),
    async loopDelay() {
      const told = once(server.child, 'message')
      server.child.send('tell')
      const [delay] = await told
      return delay as LoopDelay
    },
  }
}
