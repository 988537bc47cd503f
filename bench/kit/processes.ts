import { type ChildProcess, fork, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { BareAnswers } from './bare.ts'
import type { Load, LoadResult } from './load.ts'

const here = (file: string) => new URL(file, import.meta.url)

/** The next message of a process of the benchmark. */
export const reply = <Message>(child: ChildProcess) =>
  new Promise<Message>((resolve, reject) => {
    const onExit = () => reject(new Error('a process of the benchmark ended'))
    child.once('exit', onExit)
    child.once('message', (message) => {
      child.off('exit', onExit)
      resolve(message as Message)
    })
  })

export const ask = <Message>(child: ChildProcess, question: object) => {
  child.send(question)
  return reply<Message>(child)
}

export type Server = { url: string; pid: number; stop(): Promise<void> }
export type Carillon = Server & { appId: string; appKey: string; organizationKey: string; dataDir: string }

/** A server process with these settings, as `npm start` makes it. */
export async function startServer(settings: Record<string, string>): Promise<Server> {
  const own = { PORT: '0', HOST: '127.0.0.1', LIMITS: 'off', LOG_LEVEL: 'warn' }
  const flags = ['--max-semi-space-size=24', '--heap-growing-percent=30']
  const child = spawn(process.execPath, [...flags, here('../../server/run.mjs').pathname, 'main'], {
    env: { ...process.env, ...own, ...settings },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const url = await new Promise<string>((resolve, reject) => {
    let text = ''
    child.stdout.on('data', (chunk) => {
      text += chunk
      const found = /listens on (http:\S+)/.exec(text)
      if (found) resolve(found[1] as string)
    })
    child.once('exit', () => reject(new Error('the server did not start')))
  })
  return {
    url,
    pid: child.pid as number,
    async stop() {
      child.kill('SIGTERM')
      await new Promise((resolve) => child.once('exit', resolve))
    },
  }
}

/** A real server on a new data folder: its own PostgreSQL, every write on disk before its answer. `settings` are added. */
export async function startCarillon(settings: Record<string, string> = {}): Promise<Carillon> {
  const dataDir = await mkdtemp(join(tmpdir(), 'carillon-bench-'))
  const server = await startServer({ DATA_DIR: dataDir, ...settings })
  const keys = JSON.parse(await readFile(join(dataDir, 'first-keys.json'), 'utf8'))
  return {
    ...server,
    appId: keys.app_id,
    appKey: keys.app_key,
    organizationKey: keys.organization_key,
    dataDir,
    async stop() {
      await server.stop()
      await rm(dataDir, { recursive: true })
    },
  }
}

export async function startBare(answers: BareAnswers): Promise<Server> {
  const child = fork(here('./bare.ts'), { stdio: 'inherit' })
  child.send(answers)
  const { url } = await reply<{ url: string }>(child)
  return {
    url,
    pid: child.pid as number,
    async stop() {
      child.kill()
    },
  }
}

export function startLoadTool(): { run(load: Load): Promise<LoadResult>; stop(): void } {
  const child = fork(here('./load.ts'), { stdio: 'inherit' })
  return {
    async run(load) {
      child.send(load)
      const { result, error } = await reply<{ result?: LoadResult; error?: string }>(child)
      if (!result) throw new Error(error)
      return result
    },
    stop: () => void child.kill(),
  }
}

export const headersOf = ({ appKey }: Pick<Carillon, 'appKey'>) => ({
  authorization: `Key ${appKey}`,
  'content-type': 'application/json',
})

/** Memory that the process holds, in MB; 0 where the system does not say. */
export function residentMb(pid: number): number {
  try {
    const [, kb = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    return Math.round(Number(kb) / 1024)
  } catch {
    return 0
  }
}
