// Prints what breaks the rules about imports, words and lookups; `npm run check` runs it.

import { openSources } from '../source.ts'
import { findFolderProblems } from './folders.ts'
import { findCycles, findImports, refuse } from './imports.ts'
import { findForeignLookups } from './lookups.ts'
import { findForbiddenWords } from './words.ts'

const sources = openSources()
try {
  const imports = findImports(sources)
  const problems = [
    ...imports.flatMap((it) => {
      const reason = refuse(it)
      return reason === undefined ? [] : [`${it.from} imports ${it.to}: ${reason}`]
    }),
    ...findCycles(imports).map((cycle) => `import cycle: ${cycle.join(' -> ')}`),
    ...findFolderProblems(sources.files.map(({ path }) => path)),
    ...findForbiddenWords(sources),
    ...findForeignLookups(sources),
  ]
  for (const problem of problems) console.error(problem)
  process.exitCode = problems.length > 0 ? 1 : 0
} finally {
  sources.close()
}
