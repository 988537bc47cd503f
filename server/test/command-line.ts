// Carillon's processes as an operator starts them, for tests that must see the real thing.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { ClientConfig } from 'pg'

const LAUNCHER = fileURLToPath(new URL('../run.mjs', import.meta.url))

export type Ended = { code: number | null; out: string; err: string }

/** Nothing of the test's own environment is a setting of the process. */
const environment = (settings: Record<string, string>) => ({
  PATH: process.env.PATH ?? '',
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
  ...settings,
})

const start = (entry: string, args: string[], settings: Record<string, string>) =>
  spawn(process.execPath, [LAUNCHER, entry, ...args], { env: environment(settings), stdio: 'pipe' })

export async function carillon(args: string[], settings: Record<string, string> = {}, input = ''): Promise<Ended> {
  const child = start('cli/main', args, settings)
  // A command that does not read what it is given may end before it has all of it.
  child.stdin.on('error', () => {}).end(input)
  const ended: Ended = { code: null, out: '', err: '' }
  child.stdout.setEncoding('utf8').on('data', (text) => (ended.out += text))
  child.stderr.setEncoding('utf8').on('data', (text) => (ended.err += text))
  ;[ended.code] = await once(child, 'close')
  return ended
}

export type RunningServer = { url: string; lines: string[]; stop(): Promise<void> }

/** A server on a free port; comes back when it listens. */
export async function startServer(settings: Record<string, string>): Promise<RunningServer> {
  const child = start('main', [], { PORT: '0', HOST: '127.0.0.1', LOG_LEVEL: 'error', ...settings })
  child.stderr.pipe(process.stderr)
  const lines: string[] = []
  for await (const line of createInterface(child.stdout)) {
    lines.push(line)
    const url = /listens on (\S+)/.exec(line)?.[1]
    if (url !== undefined) return { url, lines, stop: () => stop(child) }
  }
  throw new Error(`the server did not start: ${lines.join('\n')}`)
}

async function stop(child: ChildProcess) {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.stdout?.resume()
  child.kill('SIGTERM')
  await once(child, 'exit')
}

/** DATABASE_URL for a connection, also for one through a socket. */
export function urlOf({ host, port, user, password, database }: ClientConfig): string {
  const parts = new URLSearchParams({ host: String(host), port: String(port), user: String(user) })
  if (typeof password === 'string') parts.set('password', password)
  return `postgres:///${database}?${parts}`
}
