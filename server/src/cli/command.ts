// What a command is, and how it reads its arguments.

import { parseArgs } from 'node:util'
import { isUuid } from '../lib/ids.ts'
import type { Config } from '../settings/config.ts'

export type CliCommand = {
  name: string
  summary: string
  /** What follows the name in the help text. */
  usage: string
  /** Flags besides the settings, --json and --help. They take one value, several values, or none. */
  flags?: Record<string, 'text' | 'list' | 'switch'>
  /** How many words may follow the name. Defaults to none. */
  words?: { least: number; most: number }
  examples: string[]
  run(call: { config: Config; given: CliInput } & Console): Promise<CommandOutcome>
}

/** Input and output of a command while it runs, besides its result. */
export type Console = {
  /** Standard input. */
  input: AsyncIterable<Uint8Array | string>
  /** Writes one line to standard error. */
  warn(line: string): void
}

export type CommandOutcome = {
  /** For programs. */
  json: unknown
  /** For people. */
  text: string
  /** The command ran, but what it found is bad. */
  failed?: boolean
}

/** The arguments are wrong: retrying without changing them is pointless. */
export class UsageError extends Error {}

export type CliInput = {
  words: string[]
  json: boolean
  text(flag: string): string | undefined
  needed(flag: string): string
  id(flag: string): string | undefined
  neededId(flag: string): string
  list(flag: string): string[]
  has(flag: string): boolean
  isOn(flag: string): boolean | undefined
}

export function readGiven(command: CliCommand, args: string[]): CliInput {
  const { values, positionals: words } = parse(command, args)
  const { least, most } = command.words ?? { least: 0, most: 0 }
  if (words.length < least) throw new UsageError(`"${command.name}" needs more: ${command.usage}`)
  if (words.length > most) throw new UsageError(`"${command.name}" does not take "${words[most]}"`)

  const text = (flag: string) => values[flag] as string | undefined
  const needed = (flag: string) => {
    const value = text(flag)
    if (value === undefined) throw new UsageError(`"${command.name}" needs --${flag}`)
    return value
  }
  return {
    words,
    json: values.json === true,
    text,
    needed,
    id: (flag) => {
      const value = text(flag)
      return value === undefined ? undefined : readId(value, `--${flag}`)
    },
    neededId: (flag) => readId(needed(flag), `--${flag}`),
    list: (flag) => (values[flag] as string[] | undefined) ?? [],
    has: (flag) => values[flag] === true,
    isOn: (flag) => {
      const value = text(flag)
      if (value === undefined || value === 'on' || value === 'off') return value && value === 'on'
      throw new UsageError(`--${flag} must be on or off`)
    },
  }
}

export function readId(text: string, what: string): string {
  if (!isUuid(text)) throw new UsageError(`${what} must be an id, as 0b6e3ad6-52ab-4a35-8b04-6a1f6e3a1c11`)
  return text.toLowerCase()
}

function parse({ flags = {} }: CliCommand, args: string[]) {
  const options = Object.fromEntries(
    Object.entries({ json: 'switch', ...flags }).map(([name, kind]) => [
      name,
      { type: kind === 'switch' ? ('boolean' as const) : ('string' as const), multiple: kind === 'list' },
    ]),
  )
  try {
    return parseArgs({ args, options, allowPositionals: true })
  } catch (error) {
    // The rest of the parser's message is advice about its own syntax.
    throw new UsageError((error as Error).message.split(/[.\n]/)[0] as string)
  }
}
