// How files are laid out: no folder so full that nobody can find anything in it, and a root with two files to start from.

import { dirname } from 'node:path'

const MAX_FILES_PER_FOLDER = 25
const ROOT_FILES = ['app.ts', 'main.ts']

/** `paths` are relative to server/src, without tests. */
export function findFolderProblems(paths: readonly string[]): string[] {
  const folders = Map.groupBy(paths, dirname)
  const strangers = (folders.get('.') ?? []).filter((path) => !ROOT_FILES.includes(path))
  return [
    ...strangers.map((path) => `${path} lies in the root, which has ${ROOT_FILES.join(' and ')} alone`),
    ...[...folders]
      .filter(([, files]) => files.length > MAX_FILES_PER_FOLDER)
      .map(([folder, files]) => `${folder} has ${files.length} files; the most is ${MAX_FILES_PER_FOLDER}`),
  ]
}
