import type { CliCommand } from './command.ts'
import { fields } from './print.ts'

export function overview(commands: CliCommand[]): string {
  return `Usage: carillon <command> [flags]

${indent(
  fields([
    ...commands.map(({ name, summary }): [string, string] => [name, summary]),
    ['help [command]', 'Explain a command, with examples.'],
    ['version', 'Print the version.'],
  ]),
)}

"carillon" stands for "npm run -s carillon --", run in the Carillon directory.
Every command takes --json, --help, and the settings of docs/settings.md, such as --data-dir FOLDER or --database-url URL.
Commands work with and without a running server. Exit codes: 0 success, 1 failure, 2 wrong usage.`
}

export const explainCommands = (commands: CliCommand[]): string => commands.map(explainCommand).join('\n\n\n')

const explainCommand = ({ name, usage, summary, examples }: CliCommand) =>
  `Usage: carillon ${[name, usage].filter(Boolean).join(' ')} [--json]

${summary}

Examples:
${indent(examples.join('\n'))}`

const indent = (text: string) => text.replaceAll(/^(?=.)/gm, '  ')
