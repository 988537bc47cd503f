// `npm run licences`: writes docs/licences.md, the licence of everything that is installed to run the server, from package-lock.json.
// With --check it only compares. A licence outside of the list fails either way.
import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

/** They ask for no more than their text to be kept. Of a choice, one of them is enough. */
const ALLOWED = ['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'ISC', 'MIT']

const pathOf = (name) => fileURLToPath(new URL(`../${name}`, import.meta.url))

export function listLicences({ packages }) {
  const list = Object.entries(packages)
    .filter(([path, { dev, devOptional }]) => path !== '' && !dev && !devOptional)
    .map(([path, { name, version, license = 'unknown' }]) => ({
      // A package that stands in for another is installed under the other's name.
      name: name ?? path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length),
      version,
      licence: license,
    }))
    .sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
  return list.filter((entry, i) => i === 0 || keyOf(entry) !== keyOf(list[i - 1]))
}

const keyOf = ({ name, version }) => `${name} ${version}`

export function isAllowed(licence) {
  const choices = licence.replace(/^\((.*)\)$/, '$1').split(' OR ')
  return choices.some((choice) => ALLOWED.includes(choice))
}

export const writeList = (list) => `# Licences

Everything that is installed to run the server, with its licence. Written by \`npm run licences\`, compared by \`npm run check\`;
allowed are ${ALLOWED.join(', ')}.

| Package | Version | Licence |
|---|---|---|
${list.map(({ name, version, licence }) => `| ${name} | ${version} | ${licence} |`).join('\n')}
`

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const list = listLicences(JSON.parse(await readFile(pathOf('package-lock.json'), 'utf8')))
  const refused = list.filter(({ licence }) => !isAllowed(licence))
  for (const { name, version, licence } of refused)
    console.error(`${name} ${version}: the licence ${licence} is not allowed`)
  const file = pathOf('docs/licences.md')
  const isCheck = process.argv.includes('--check')
  const isStale = isCheck && (await readFile(file, 'utf8')) !== writeList(list)
  if (isStale)
    console.error('docs/licences.md is not what package-lock.json says: run "npm run licences", and read what changed')
  if (!isCheck) await writeFile(file, writeList(list))
  process.exitCode = refused.length > 0 || isStale ? 1 : 0
}
