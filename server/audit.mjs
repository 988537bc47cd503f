// `npm run audit`: known vulnerabilities in what runs. A finding fails; a registry that cannot be asked is told, and fails nothing,
// so that the check also runs where there is no network.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../', import.meta.url))
const { stdout = '' } = spawnSync('npm', ['audit', '--omit=dev', '--json'], { cwd: root, encoding: 'utf8' })
const report = readReport(stdout)

if (report?.metadata?.vulnerabilities === undefined) {
  console.warn(`not audited: the registry did not answer (${report?.message ?? report?.error?.summary ?? 'no report'})`)
} else if (report.metadata.vulnerabilities.total > 0) {
  for (const { name, severity, range, via } of Object.values(report.vulnerabilities))
    console.error(`${severity}: ${name} ${range}: ${via.map((it) => it.title ?? it).join('; ')}`)
  process.exitCode = 1
} else console.log('no known vulnerabilities at run time')

function readReport(text) {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
