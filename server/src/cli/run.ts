// Runs a command line, and returns its output and exit code: 0 success, 1 failure, 2 wrong usage.

import { VERSION } from '../lib/version.ts'
import { explain } from '../process/explain-failure.ts'
import { ConfigError, readConfig } from '../settings/config.ts'
import { type CliCommand, type Console, readGiven, UsageError } from './command.ts'
import { commands } from './commands.ts'
import { brokenSettings } from './doctor.ts'
import { explainCommands, overview } from './help.ts'

export type Printed = { code: 0 | 1 | 2; out: string; err: string }
type Environment = Record<string, string | undefined>

const silence: Console = { input: (async function* () {})(), warn: () => {} }

export async function runCarillon(args: string[], env: Environment, terminal = silence): Promise<Printed> {
  try {
    return await answer(args, env, terminal)
  } catch (error) {
    if (error instanceof UsageError) return { code: 2, out: '', err: `carillon: ${error.message}` }
    return { code: error instanceof ConfigError ? 2 : 1, out: '', err: `carillon: ${explain(error)}` }
  }
}

async function answer(args: string[], env: Environment, terminal: Console): Promise<Printed> {
  const json = args.includes('--json')
  let settings: ReturnType<typeof readConfig>
  try {
    settings = readConfig(env, args)
  } catch (error) {
    if (!(error instanceof ConfigError) || args[0] !== 'doctor') throw error
    return print(brokenSettings(error), json)
  }
  const { config, rest } = settings
  const words = rest.filter((word) => !word.startsWith('-'))
  if (words[0] === 'help') return say(help(words.slice(1)))
  if (rest.includes('--help') || rest.includes('-h')) return say(help(words))
  if (rest.length === 0) return say(overview(commands))
  if (words[0] === 'version' || rest[0] === '--version')
    return print({ json: { version: VERSION }, text: VERSION }, json)

  const { command, args: own } = findCommand(rest)
  try {
    const given = readGiven(command, own)
    return print(await command.run({ config, given, ...terminal }), given.json)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    throw new UsageError(`${error.message}\nSee "carillon help ${command.name}".`)
  }
}

const say = (out: string): Printed => ({ code: 0, out, err: '' })

const print = (outcome: { json: unknown; text: string; failed?: boolean }, json: boolean): Printed => ({
  code: outcome.failed ? 1 : 0,
  out: json ? JSON.stringify(outcome.json) : outcome.text,
  err: '',
})

const isAt = (words: string[], { name }: CliCommand) => name.split(' ').every((word, i) => words[i] === word)

/** Finds the command whose name matches, wherever flags are placed; the remaining words are its arguments. */
function findCommand(rest: string[]): { command: CliCommand; args: string[] } {
  const start = rest.findIndex((word) => !word.startsWith('-'))
  const words = start < 0 ? [] : rest.slice(start)
  const command = commands.find((candidate) => isAt(words, candidate))
  if (!command) throw unknown(words, rest)
  return { command, args: [...rest.slice(0, Math.max(start, 0)), ...words.slice(command.name.split(' ').length)] }
}

function unknown(words: string[], rest: string[]): UsageError {
  const [noun] = words
  if (noun === undefined) return new UsageError(`${rest[0]} needs a command\nSee "carillon help".`)
  const verbs = commands
    .filter(({ name }) => name.startsWith(`${noun} `))
    .map(({ name }) => name.slice(noun.length + 1))
  return verbs.length > 0
    ? new UsageError(`"${noun}" is followed by ${verbs.join(', ')}\nSee "carillon help ${noun}".`)
    : new UsageError(`there is no command "${noun}"\nSee "carillon help".`)
}

/** Explains one command, all commands that begin with a word, or everything. */
function help(words: string[]): string {
  if (words.length === 0) return overview(commands)
  const exact = commands.filter((command) => isAt(words, command))
  const begun = exact.length > 0 ? exact : commands.filter(({ name }) => name.split(' ')[0] === words[0])
  if (begun.length === 0) throw unknown(words, words)
  return explainCommands(begun)
}
