import pg from 'pg'
import type { Log } from '../lib/log.ts'

export type Listener = {
  /**
   * Subscribes to a channel. `onGap` runs after each (re)connect, because earlier notifications may have been missed.
   */
  on(channel: string, heard: (payload: string) => void, onGap: () => void): void
  close(): Promise<void>
}

const RETRY_MS = 1_000

/** Listens on a dedicated connection, and reconnects when the database comes back. */
export function createListener(connection: pg.ClientConfig, log: Log): Listener {
  const channels = new Map<string, { heard: (payload: string) => void; onGap: () => void }[]>()
  let client: pg.Client | undefined
  let closed = false
  let retry: NodeJS.Timeout | undefined

  async function connect() {
    if (closed) return
    const fresh = new pg.Client({
      ...connection,
      application_name: 'carillon listener',
      keepAlive: true,
      connectionTimeoutMillis: 3_000,
    })
    // A lost connection may raise an error, an end, or both, the second long after the first; either way the connection
    // is replaced once.
    let replaced = false
    const lost = () => {
      if (replaced) return
      replaced = true
      if (client === fresh) client = undefined
      fresh.end().catch(() => {})
      if (!closed && !retry) {
        retry = setTimeout(() => {
          retry = undefined
          void connect()
        }, RETRY_MS)
        retry.unref()
      }
    }
    fresh.on('error', lost)
    fresh.on('end', lost)
    fresh.on('notification', ({ channel, payload }) => {
      for (const { heard } of channels.get(channel) ?? []) heard(payload ?? '')
    })
    try {
      await fresh.connect()
      for (const channel of channels.keys()) await fresh.query(`listen ${pg.escapeIdentifier(channel)}`)
      if (closed) return lost()
      client = fresh
      for (const hearers of channels.values()) for (const { onGap } of hearers) onGap()
    } catch (error) {
      log.debug({ reason: (error as Error).message }, 'Listener could not connect')
      lost()
    }
  }

  void connect()
  return {
    on(channel, heard, onGap) {
      const hearers = channels.get(channel)
      if (hearers) {
        hearers.push({ heard, onGap })
        if (client) onGap()
        return
      }
      channels.set(channel, [{ heard, onGap }])
      client?.query(`listen ${pg.escapeIdentifier(channel)}`).then(onGap, () => {})
    },
    async close() {
      closed = true
      clearTimeout(retry)
      await client?.end().catch(() => {})
    },
  }
}
