// Writes server/openapi.json from the routes. With --check it only reports whether the file is up to date.

import { readFile, writeFile } from 'node:fs/promises'
import { describeApi } from '../http/openapi.ts'
import { declaredRoutes } from './declared-routes.ts'

const FILE = new URL('../../openapi.json', import.meta.url)

const { domains, kit } = declaredRoutes()
const text = `${JSON.stringify(describeApi([...domains, ...kit]), null, 2)}\n`

if (process.argv.includes('--check')) {
  const present = await readFile(FILE, 'utf8').catch(() => '')
  if (present !== text) {
    console.error('server/openapi.json is not what the routes say; run "npm run openapi"')
    process.exitCode = 1
  }
} else await writeFile(FILE, text)
