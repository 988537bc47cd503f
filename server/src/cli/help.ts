import type { CliCommand } from './command.ts'
import { fields } from './print.ts'

export function overview(commands: CliCommand[]): string {
  return `Usage: carillon <command> [flags]

${indent(
  fields([
    ...commands.map(({ name, summary }): [string, string] => [name, summary]),
    ['help [command]', 'Explain a command, with examples.'],
    ['version', 'Say which version this is.'],
  ]),
)}

"carillon" stands for "npm run -s carillon --", run in Carillon's folder.
Every command takes --json, --help, and the settings of docs/settings.md, as --data-dir FOLDER or --database-url URL.
It works beside a running server and without one. Exit codes: 0 done, 1 failed, 2 wrong usage.`
}

export const explainCommands = (commands: CliCommand[]): string => commands.map(explainCommand).join('\n\n\n')

const explainCommand = ({ name, usage, summary, examples }: CliCommand) =>
  `Usage: carillon ${[name, usage].filter(Boolean).join(' ')} [--json]

${summary}

Examples:
${indent(examples.join('\n'))}`

const indent = (text: string) => text.replaceAll(/^(?=.)/gm, '  ')
