// The text of `npm start -- --help`.

import { flagName, settings } from './config.ts'

/** Fits into a terminal of ordinary width. */
const WIDTH = 100
const INDENT = '      '

export const settingsHelp = () =>
  `Usage: npm start -- [flags]

Starts the server. Without flags it creates a database in ./data, prints the first keys, and listens on port 3000.
Each setting is a flag or an environment variable; the flag wins. See docs/settings.md for details.

${Object.values(settings)
  .map(({ env, fallback, help }) => {
    const shown = fallback === undefined ? '' : ` (default: ${String(fallback)})`
    return `  ${flagName(env)}, ${env}${shown}\n${wrapped(help)}`
  })
  .join('\n')}

  --help
${wrapped('Prints this help.')}
  --version
${wrapped('Prints the version.')}

Run "npm run -s carillon -- help" for the operator's command line.`

function wrapped(text: string): string {
  const lines: string[] = ['']
  for (const word of text.split(' ')) {
    const line = lines.at(-1) as string
    if (line !== '' && INDENT.length + line.length + 1 + word.length > WIDTH) lines.push(word)
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`
  }
  return lines.map((line) => INDENT + line).join('\n')
}
