// PostgreSQL refuses to run as root. On a rented server root is often the only account, so root's PostgreSQL runs in a
// user namespace in which root's own files belong to nobody. Where namespaces are forbidden, it runs as the real user
// nobody.

import { type SpawnOptions, spawn } from 'node:child_process'
import { userInfo } from 'node:os'
import { EmbeddedError } from './error.ts'

export type Account = {
  /** For the log. */
  kind: 'own' | 'namespace' | 'nobody'
  /** The owner that the files must have. */
  uid: number
  gid: number
  /**
   * The command that runs a program under this account; `ends` is the signal that it receives when this process dies.
   */
  command(program: string, args: string[], ends: 'SIGINT' | 'SIGKILL'): SpawnCommand
}

export type SpawnCommand = { file: string; args: string[]; options: SpawnOptions }

const NOBODY = 65_534
const NAMESPACE = ['unshare', '-U', `--map-user=${NOBODY}`, `--map-group=${NOBODY}`]

// The server's own environment contains its secrets and possibly PG… variables; PostgreSQL must get neither.
const ENVIRONMENT = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' }
const DEATH_SIGNAL = ['setpriv', '--pdeathsig']

export async function chooseAccount(): Promise<Account> {
  const uid = process.getuid?.() ?? -1
  const gid = process.getgid?.() ?? -1
  if (process.platform !== 'linux') {
    if (uid === 0) throw new EmbeddedError('PostgreSQL does not run as root here; start Carillon as an ordinary user')
    return { kind: 'own', uid, gid, command: (file, args) => ({ file, args, options: { env: ENVIRONMENT } }) }
  }

  // The next start ends an orphan in any case; with this there is none.
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

/** Containers often run under a user id without a name, which PostgreSQL refuses too. */
function hasName(): boolean {
  try {
    return userInfo().username !== ''
  } catch {
    return false
  }
}

/**
 * Root's privileges do not carry over to the other account, which may have no access to a folder that only its owner
 * may enter.
 */
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
