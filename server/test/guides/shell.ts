// One shell for a whole guide, so that variables and functions stay as they do in a reader's terminal.

import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

export type ShellResult = { out: string; hasFailed: boolean }
export type Shell = { run(commands: string): Promise<ShellResult>; close(): void }

/** Any command that fails is noticed, also in a pipe or a function; for curl, an HTTP error is a failure too. */
const PREPARE = `
set -E -o pipefail
curl() { command curl --fail-with-body "$@"; }
trap 'FAILED=1' ERR
`

export function openShell(cwd: string, env: Record<string, string | undefined>): Shell {
  const child = spawn('bash', ['--norc', '--noprofile'], { cwd, env, stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  child.stdin.write(PREPARE)
  let count = 0
  return {
    async run(commands) {
      const end = `== end of block ${++count}`
      // Standard error is shown to the reader as well.
      child.stdin.write(`FAILED=0\n{\n${commands}\n} 2>&1\nprintf '\\n%s %s\\n' ${JSON.stringify(end)} "$FAILED"\n`)
      const printed: string[] = []
      for (;;) {
        const { value, done } = await lines.next()
        if (done) throw new Error(`the shell ended: ${printed.join('\n')}`)
        if (value.startsWith(end)) return { out: printed.join('\n'), hasFailed: !value.endsWith(' 0') }
        printed.push(value)
      }
    },
    close() {
      child.stdin.end()
      child.kill()
    },
  }
}
