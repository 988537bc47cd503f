// PostgreSQL refuses to run as root. On a server rented by the hour root is often the only account there is, so root's
// PostgreSQL runs in a user namespace in which root's own files are nobody's. Where namespaces are forbidden it runs as
// the real nobody.

import { type SpawnOptions, spawn } from 'node:child_process'
import { userInfo } from 'node:os'
import { EmbeddedError } from './error.ts'

export type Account = {
  /** For the log. */
  kind: 'own' | 'namespace' | 'nobody'
  /** Whose the files must be. */
  uid: number
  gid: number
  /** The command that runs a program under this account; `ends` is the signal that it gets when we die. */
  command(program: string, args: string[], ends: 'SIGINT' | 'SIGKILL'): SpawnCommand
}

export type SpawnCommand = { file: string; args: string[]; options: SpawnOptions }

const NOBODY = 65_534
const NAMESPACE = ['unshare', '-U', `--map-user=${NOBODY}`, `--map-group=${NOBODY}`]

// The server's own environment holds its secrets and perhaps PG… variables; neither is PostgreSQL's business.
const ENVIRONMENT = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' }
const DEATH_SIGNAL = ['setpriv', '--pdeathsig']

export async function chooseAccount(): Promise<Account> {
  const uid = process.getuid?.() ?? -1
  const gid = process.getgid?.() ?? -1
  if (process.platform !== 'linux') {
    if (uid === 0) throw new EmbeddedError('PostgreSQL does not run as root here; start Carillon as an ordinary user')
    return { kind: 'own', uid, gid, command: (file, args) => ({ file, args, options: { env: ENVIRONMENT } }) }
  }

  // An orphan is ended at the next start in any case; with this, there is none to end.
  const dies = (await succeeds([...DEATH_SIGNAL, 'KILL', 'true'])) ? DEATH_SIGNAL : []
  const commandWith =
    (prefix: string[], options: SpawnOptions = {}): Account['command'] =>
    (program, args, ends) => {
      const [file = program, ...rest] = [
        ...prefix,
        ...(dies.length > 0 ? [...dies, ends.slice(3), '--'] : []),
        program,
        ...args,
      ]
      return { file, args: rest, options: { env: ENVIRONMENT, ...options } }
    }

  if (uid !== 0 && hasName()) return { kind: 'own', uid, gid, command: commandWith([]) }
  if (await succeeds([...NAMESPACE, 'true'])) return { kind: 'namespace', uid, gid, command: commandWith(NAMESPACE) }
  if (uid !== 0)
    throw new EmbeddedError(`PostgreSQL needs a user with a name, and user id ${uid} is not in /etc/passwd`)
  const nobody = { uid: NOBODY, gid: NOBODY }
  return { kind: 'nobody', ...nobody, command: commandWith([], nobody) }
}

/** Containers run under bare numbers, which PostgreSQL refuses as well. */
function hasName(): boolean {
  try {
    return userInfo().username !== ''
  } catch {
    return false
  }
}

/** Root's rights do not follow into the other account: a folder closed to all but its owner may be closed to it. */
export function canReach(account: Account, path: string, test: '-x' | '-w'): Promise<boolean> {
  const { file, args, options } = account.command('sh', ['-c', `test ${test} "$1"`, 'sh', path], 'SIGKILL')
  return succeeds([file, ...args], options)
}

function succeeds([file = '', ...args]: string[], options: SpawnOptions = {}): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(file, args, { ...options, stdio: 'ignore' })
    child.on('error', () => resolve(false))
    child.on('exit', (code) => resolve(code === 0))
  })
}
