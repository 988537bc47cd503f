// `npm run check`: everything that can be said about the code without running it. One line for each check, and all that a
// failing one has to say.
import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../', import.meta.url))
const checks = [
  { name: 'types', command: ['tsc', '-p', '.'] },
  { name: 'types of the web SDK', command: ['tsc', '-p', 'web-sdk'] },
  { name: 'types of its worker', command: ['tsc', '-p', 'web-sdk/tsconfig.worker.json'] },
  { name: 'lint and format', command: ['biome', 'check', '--error-on-warnings', '--max-diagnostics=none', '.'] },
  { name: 'import direction', command: [process.execPath, 'server/test/code-rules/check.ts'] },
  {
    name: 'openapi.json in sync',
    command: [process.execPath, 'server/run.mjs', 'composition/write-openapi', '--check'],
  },
  { name: 'licences', command: [process.execPath, 'server/licences.mjs', '--check'] },
  { name: 'known vulnerabilities at run time', command: [process.execPath, 'server/audit.mjs'] },
]

function run([file, ...args]) {
  return new Promise((resolve) => {
    let output = ''
    const env = { ...process.env, PATH: `${root}node_modules/.bin:${process.env.PATH}` }
    const child = spawn(file, args, { cwd: root, env })
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
    child.on('error', (error) => resolve({ ok: false, output: error.message }))
    child.on('close', (code) => resolve({ ok: code === 0, output }))
  })
}

const results = await Promise.all(checks.map(async ({ name, command }) => ({ name, ...(await run(command)) })))
for (const { name, ok, output } of results) {
  console.log(`${ok ? 'ok    ' : 'FAILED'} ${name}`)
  if (!ok || output.startsWith('not audited')) console.log(output.trimEnd())
}
process.exitCode = results.every(({ ok }) => ok) ? 0 : 1
