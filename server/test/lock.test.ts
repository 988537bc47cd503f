import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'

type Locked = {
  version: string
  integrity?: string
  resolved?: string
  license?: string
  dev?: boolean
  os?: string[]
  cpu?: string[]
  libc?: string[]
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
}
type Lock = { packages: Record<string, Locked> }
/** A version, or the versions of packages below another package. */
type Versions = { [name: string]: string | Versions }
type Manifest = Record<'dependencies' | 'devDependencies' | 'optionalDependencies', Record<string, string>> & {
  overrides: Versions
}

const read = async (name: string) => JSON.parse(await readFile(new URL(`../../${name}`, import.meta.url), 'utf8'))
const lock: Lock = await read('package-lock.json')
const manifest: Manifest = await read('package.json')

/** Where the server and its tests must install, with nothing fetched but what the lock names. */
const PLATFORMS = [
  { os: 'linux', cpu: 'x64' },
  { os: 'linux', cpu: 'arm64' },
] as const

/** What a distribution of the server may be made of. */
const LICENCES = [
  'MIT',
  'ISC',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  '0BSD',
  'BlueOak-1.0.0',
  'Unlicense',
  'CC0-1.0',
]

/** Below these a package has a fault that we know of. */
const FLOORS: Record<string, string> = {
  fastify: '5.8.5',
  handlebars: '4.7.7',
  liquidjs: '10.26.0',
  'node-forge': '1.3.2',
}

const nameOf = (path: string) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)

/** Where Node finds `name` from within the package at `path`. */
function resolve({ packages }: Lock, path: string, name: string): Locked | undefined {
  for (let at = path; ; at = at.slice(0, Math.max(0, at.lastIndexOf('node_modules/') - 1))) {
    const found = packages[`${at === '' ? '' : `${at}/`}node_modules/${name}`]
    if (found || at === '') return found
  }
}

const isFor = (name: string, { os, cpu }: { os: string; cpu: string }) =>
  new RegExp(`(^|[-/@])${os}-${cpu}(-(gnu|glibc))?$`).test(name)

/** The platform binaries that locked packages name but the lock lacks. */
function missingBinaries(lock: Lock): string[] {
  return Object.entries(lock.packages).flatMap(([path, { optionalDependencies = {} }]) => {
    const owner = path === '' ? 'package.json' : nameOf(path)
    const hasBinaries = Object.keys(optionalDependencies).some((name) => PLATFORMS.some((it) => isFor(name, it)))
    if (!hasBinaries) return []
    return PLATFORMS.flatMap((platform) => {
      const names = Object.keys(optionalDependencies).filter((name) => isFor(name, platform))
      if (names.length === 0) return [`${owner} has nothing for ${platform.os} ${platform.cpu}`]
      return names.flatMap((name) => {
        const found = resolve(lock, path, name)
        if (!found?.integrity) return [`${owner} needs ${name}, which the lock does not hold`]
        if (found.version !== optionalDependencies[name])
          return [`${owner} needs ${name} ${optionalDependencies[name]}, the lock holds ${found.version}`]
        const fits = found.os?.includes(platform.os) && found.cpu?.includes(platform.cpu)
        return fits ? [] : [`${name} is said to be for ${found.os} ${found.cpu}`]
      })
    })
  })
}

/** A version, or another package in place of the one that is asked for, in one version. */
const isExact = (version: string) => /^(npm:[\w@/.-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/.test(version)

const inexactIn = (versions: Versions): string[] =>
  Object.entries(versions).flatMap(([name, version]) =>
    typeof version === 'object' ? inexactIn(version) : isExact(version) ? [] : [`${name}: ${version}`],
  )

const inexactVersions = (manifest: Partial<Manifest>) =>
  (['dependencies', 'devDependencies', 'optionalDependencies', 'overrides'] as const).flatMap((group) =>
    inexactIn(manifest[group] ?? {}),
  )

/** Where there is a choice, one that is allowed is enough. */
const isAllowed = (license: string) =>
  license
    .replace(/^\((.+)\)$/, '$1')
    .split(' OR ')
    .some((choice) => LICENCES.includes(choice))

const unlicensed = ({ packages }: Lock) =>
  Object.entries(packages)
    .filter(([path, { dev, license = 'none given' }]) => path !== '' && !dev && !isAllowed(license))
    .map(([path, { license }]) => `${nameOf(path)}: ${license ?? 'none given'}`)

const numbers = (version: string) => version.split('-')[0]?.split('.').map(Number) ?? []
function isBelow(version: string, floor: string): boolean {
  const [a, b] = [numbers(version), numbers(floor)]
  const differing = [0, 1, 2].find((i) => a[i] !== b[i])
  return differing !== undefined && (a[differing] ?? 0) < (b[differing] ?? 0)
}
const tooOld = ({ packages }: Lock) =>
  Object.entries(packages)
    .filter(([path, { version }]) => path !== '' && isBelow(version, FLOORS[nameOf(path)] ?? '0.0.0'))
    .map(([path, { version }]) => `${nameOf(path)} ${version}`)

describe('the lock file', () => {
  test('holds every binary for linux on x64 and arm64', () => {
    expect(missingBinaries(lock)).toEqual([])
    const owners = Object.entries(lock.packages).filter(([, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).some((name) => isFor(name, PLATFORMS[0])),
    )
    // The root brings Node and PostgreSQL; without these names the check would look at nothing.
    expect(owners.map(([path]) => (path === '' ? '' : nameOf(path)))).toEqual(
      expect.arrayContaining(['', '@biomejs/biome', 'typescript', 'esbuild', 'rollup']),
    )
  })

  test('holds what package.json asks for, in exact versions', () => {
    expect(inexactVersions(manifest)).toEqual([])
    const asked = { ...manifest.dependencies, ...manifest.devDependencies, ...manifest.optionalDependencies }
    for (const [name, version] of Object.entries(asked))
      expect(lock.packages[`node_modules/${name}`]?.version, name).toBe(version)
  })

  test('names no place to fetch from, and a checksum for everything', () => {
    const named = Object.entries(lock.packages).filter(([path]) => path !== '')
    expect(named.filter(([, { resolved }]) => resolved !== undefined).map(([path]) => path)).toEqual([])
    expect(named.filter(([, { integrity }]) => !integrity?.startsWith('sha512-')).map(([path]) => path)).toEqual([])
  })

  test('brings only licences that let the server be passed on', () => {
    expect(unlicensed(lock)).toEqual([])
  })

  test('asks for few packages by name: each one is somebody to trust', () => {
    expect(Object.keys(manifest.dependencies).length).toBeLessThanOrEqual(25)
  })

  test('brings nothing that is known to be faulty', () => {
    expect(tooOld(lock)).toEqual([])
  })
})

describe('the checks of the lock file', () => {
  const owner = (optionalDependencies: Record<string, string>, packages: Lock['packages'] = {}): Lock => ({
    packages: { 'node_modules/tool': { version: '1.0.0', optionalDependencies }, ...packages },
  })
  const binary = (cpu: string, version = '1.0.0'): Locked => ({
    version,
    integrity: 'sha512-x',
    os: ['linux'],
    cpu: [cpu],
  })
  const both = { 'tool-linux-x64': '1.0.0', '@tool/linux-arm64-gnu': '1.0.0', 'tool-linux-x64-musl': '1.0.0' }

  test('find a binary that is absent, of another version, for another machine, or never there', () => {
    const arm = { 'node_modules/@tool/linux-arm64-gnu': binary('arm64') }
    expect(missingBinaries(owner(both, { ...arm, 'node_modules/tool-linux-x64': binary('x64') }))).toEqual([])
    expect(
      missingBinaries(owner(both, { ...arm, 'node_modules/tool/node_modules/tool-linux-x64': binary('x64') })),
    ).toEqual([])
    expect(missingBinaries(owner(both, arm))).toEqual(['tool needs tool-linux-x64, which the lock does not hold'])
    expect(missingBinaries(owner(both, { ...arm, 'node_modules/tool-linux-x64': binary('x64', '1.0.1') }))).toEqual([
      'tool needs tool-linux-x64 1.0.0, the lock holds 1.0.1',
    ])
    expect(missingBinaries(owner(both, { ...arm, 'node_modules/tool-linux-x64': binary('ia32') }))).toHaveLength(1)
    expect(
      missingBinaries(owner({ 'tool-linux-x64': '1.0.0' }, { 'node_modules/tool-linux-x64': binary('x64') })),
    ).toEqual(['tool has nothing for linux arm64'])
  })

  test('find ranges, licences and versions', () => {
    const ranges = ['^1.0.0', '~1.0.0', '1.x', '*', 'latest', '>=1.0.0', 'git+https://example.com/x.git', '1.0']
    for (const range of ranges) expect(inexactVersions({ dependencies: { tool: range } }), range).toHaveLength(1)
    expect(inexactVersions({ dependencies: { tool: '18.4.0-beta.17' } })).toEqual([])
    const licensed = (license: string | undefined, dev = false): Lock => ({
      packages: { 'node_modules/tool': { version: '1.0.0', dev, ...(license && { license }) } },
    })
    expect(unlicensed(licensed('AGPL-3.0'))).toEqual(['tool: AGPL-3.0'])
    expect(unlicensed(licensed(undefined))).toEqual(['tool: none given'])
    expect(unlicensed(licensed('(BSD-3-Clause OR GPL-2.0)'))).toEqual([])
    expect(unlicensed(licensed('MIT AND GPL-2.0'))).toHaveLength(1)
    expect(unlicensed(licensed('(MIT AND GPL-2.0)'))).toHaveLength(1)
    expect(unlicensed(licensed('AGPL-3.0', true))).toEqual([])
    const fastify = (version: string): Lock => ({ packages: { 'node_modules/a/node_modules/fastify': { version } } })
    expect(tooOld(fastify('5.8.4'))).toEqual(['fastify 5.8.4'])
    expect(tooOld(fastify('4.99.0'))).toHaveLength(1)
    expect([...tooOld(fastify('5.8.5')), ...tooOld(fastify('5.10.0')), ...tooOld(fastify('6.0.0'))]).toEqual([])
  })
})
