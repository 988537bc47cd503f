// The operator's command line.

import { runCarillon } from './run.ts'

// Exits through the exit handlers, so that a PostgreSQL started for this command ends with it.
process.once('SIGINT', () => process.exit(130))
process.once('SIGTERM', () => process.exit(143))
// The reader of the output may close it early: `carillon app list | head -1`.
process.stdout.on('error', () => process.exit(1))

const { code, out, err } = await runCarillon(process.argv.slice(2), process.env, {
  input: process.stdin,
  warn: (line) => console.error(line),
})
if (out !== '') console.log(out)
if (err !== '') console.error(err)
process.exitCode = code
