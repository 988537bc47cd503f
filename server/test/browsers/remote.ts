// Remote control of a browser: both makers take numbered JSON commands over a websocket.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'

export type Remote = {
  // biome-ignore lint/suspicious/noExplicitAny: whatever the browser answers; the caller knows
  send(method: string, params?: object, sessionId?: string): Promise<any>
  /** Settles when the browser next tells of this. */
  next(event: string): Promise<void>
  close(): void
}

export async function connect(url: string): Promise<Remote> {
  const socket = new WebSocket(url)
  await once(socket, 'open')
  const waiting = new Map<number, PromiseWithResolvers<unknown>>()
  const listeners = new Map<string, (() => void)[]>()
  let last = 0
  socket.addEventListener('message', ({ data }) => {
    const { id, method, result, error, message } = JSON.parse(String(data))
    for (const listener of listeners.get(method)?.splice(0) ?? []) listener()
    const asked = waiting.get(id)
    waiting.delete(id)
    if (error) asked?.reject(new Error(message ?? error.message ?? JSON.stringify(error)))
    else asked?.resolve(result)
  })
  socket.addEventListener('close', () => {
    for (const { reject } of waiting.values()) reject(new Error('the browser is gone'))
  })
  return {
    send(method, params = {}, sessionId) {
      const asked = Promise.withResolvers<unknown>()
      waiting.set(++last, asked)
      socket.send(JSON.stringify({ id: last, method, params, ...(sessionId && { sessionId }) }))
      return asked.promise
    },
    next: (event) => new Promise((resolve) => listeners.set(event, [...(listeners.get(event) ?? []), resolve])),
    close: () => socket.close(),
  }
}

export type Launched = { address: string; profile: string; stop(): Promise<void> }

/** Start a program with a profile of its own, and read from what it prints where it can be controlled. */
export async function launch(
  program: string,
  announcement: RegExp,
  args: (profile: string) => string[] | Promise<string[]>,
): Promise<Launched> {
  const profile = await mkdtemp(join(tmpdir(), 'carillon-browser-'))
  const child = spawn(program, await args(profile), {
    env: { ...process.env, HOME: profile },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const stop = async () => {
    await end(child)
    await rm(profile, { recursive: true, force: true, maxRetries: 10 })
  }
  try {
    return { address: await announced(child, announcement), profile, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

const START_MS = 240_000

function announced(child: ChildProcess, announcement: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let printed = ''
    const give = (reason: string) => reject(new Error(`${reason}; it printed: ${printed.slice(-2000)}`))
    const timer = setTimeout(() => give('the browser did not start'), START_MS)
    child.once('error', (error) => give(error.message))
    child.once('exit', (code) => give(`the browser ended with ${code}`))
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk) => {
        printed += chunk
        const address = announcement.exec(printed)?.[1]
        if (address === undefined) return
        clearTimeout(timer)
        resolve(address)
      })
  })
}

async function end(child: ChildProcess) {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), 4_000)
  await ended
  clearTimeout(timer)
}

/** Where a program is, of those names; undefined when it is not on this machine. */
export const findProgram = (...names: string[]): string | undefined =>
  (process.env.PATH ?? '')
    .split(delimiter)
    .flatMap((folder) => names.map((name) => join(folder, name)))
    .find((path) => existsSync(path))
