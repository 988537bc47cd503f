// npm run bench -- <name> [--json FILE] [options of that benchmark]
import { readdirSync } from 'node:fs'

const folder = new URL('./', import.meta.url)
const names = readdirSync(folder, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => entry.name)
  .filter((name) => name !== 'kit')
const [, , name, ...rest] = process.argv
if (!names.includes(name)) {
  console.error(`usage: npm run bench -- <${names.join('|')}> [--json FILE]`)
  process.exit(2)
}
process.argv.splice(2, process.argv.length - 2, ...rest)
await import(`./${name}/bench.ts`)
