// The log for a person at a terminal: one line for each entry, its level in colour.

import type { DestinationStream } from 'pino'

const LEVELS = new Map<number, { word: string; colour: string }>([
  [10, { word: 'trace', colour: '90' }],
  [20, { word: 'debug', colour: '90' }],
  [30, { word: 'info', colour: '32' }],
  [40, { word: 'warn', colour: '33' }],
  [50, { word: 'error', colour: '31' }],
  [60, { word: 'fatal', colour: '31;1' }],
])

type LogEntry = { level?: number; time?: string; msg?: string; [field: string]: unknown }

type OutputStream = { isTTY?: boolean | undefined }

/** If either stream goes to a file or a pipe, the log is meant for machines. */
export const defaultLogFormat = (stdout: OutputStream, stderr: OutputStream): 'pretty' | 'json' =>
  stdout.isTTY === true && stderr.isTTY === true ? 'pretty' : 'json'

export const prettyDestination = (write: (text: string) => unknown, hasColour: boolean): DestinationStream => ({
  write: (line) => void write(`${prettyLine(line, hasColour)}\n`),
})

function prettyLine(line: string, hasColour: boolean): string {
  const { level = 30, time = '', msg = '', ...fields } = JSON.parse(line) as LogEntry
  const { word, colour } = LEVELS.get(level) ?? { word: String(level), colour: '0' }
  const padded = word.padEnd(5)
  const shown = hasColour ? `\u001b[${colour}m${padded}\u001b[0m` : padded
  const rest = Object.entries(fields).map(([name, value]) => `${name}=${written(value)}`)
  return [time.slice(11, 19), shown, printable(msg), ...rest].filter(Boolean).join(' ')
}

const written = (value: unknown) =>
  typeof value === 'string' && /^[\w.:/@+-]+$/.test(value) ? value : printable(JSON.stringify(value) ?? '')

/** Escapes what a terminal would interpret, so that an entry stays on one line. */
const printable = (text: string) =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  text.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`)
