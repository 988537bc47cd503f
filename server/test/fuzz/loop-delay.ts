// Loaded into a server before anything else (`node --import`): tells whoever started it for how long its event loop was blocked.

import { monitorEventLoopDelay } from 'node:perf_hooks'

const RESOLUTION_MS = 5

const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
delay.enable()

let used = process.threadCpuUsage()

/**
 * Since it was last asked: the longest block, and the processor time of this thread. On a busy machine a block may be a pause of the
 * machine's, but no request has blocked the loop for longer than it has used the processor.
 */
process.on('message', () => {
  // A message may be read before the timer that would have noticed the block behind it.
  setTimeout(() => {
    const { user, system } = process.threadCpuUsage(used)
    process.send?.({ blockMs: Math.max(0, delay.max / 1e6 - RESOLUTION_MS), processorMs: (user + system) / 1e3 })
    delay.reset()
    used = process.threadCpuUsage()
  }, 3 * RESOLUTION_MS)
})
process.channel?.unref()
