import { systemClock } from '../lib/clock.ts'
import type { SinkBox } from '../sink/box.ts'
import { type CliCommand, UsageError } from './command.ts'

export const sinkCommands: CliCommand[] = [
  {
    name: 'sink',
    summary: 'Run stand-ins for all providers on this machine, and print the settings that connect a server to them.',
    usage: '[--port-base PORT] [--log FILE]',
    flags: { 'port-base': 'text', log: 'text' },
    examples: ['carillon sink', 'carillon sink --port-base 7000 --log deliveries.jsonl', 'carillon sink --json'],
    // The sockets of the stand-ins keep the process alive until a signal ends it.
    run: async ({ given }) => {
      const portBase = readPortBase(given.text('port-base'))
      // Loaded on demand, because other commands do not need it.
      const { openSinkBox } = await import('../sink/box.ts')
      const box = await openSinkBox({
        clock: systemClock(),
        portBase,
        logFile: given.text('log'),
      })
      return { json: shown(box), text: described(box) }
    },
  },
]

/** The stand-ins use this port and the three after it. */
function readPortBase(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (!/^\d{1,5}$/.test(text) || Number(text) < 1 || Number(text) > 65_532)
    throw new UsageError('--port-base must be a port number, 1 to 65532')
  return Number(text)
}

const shown = ({ control, settings, receivers, twilio }: SinkBox) => ({
  control,
  settings,
  receivers,
  smtp: receivers.smtp,
  twilio: { account_sid: twilio.accountSid, auth_token: twilio.authToken, from: twilio.from },
})

/**
 * Prints lines that a shell can read. A line break in a value is written as \n, which the server reads as a line break.
 */
const described = ({ control, settings, receivers }: SinkBox) =>
  [
    `# Stand-ins of all providers. What they get: curl ${control}/deliveries`,
    ...Object.entries(settings).map(([name, value]) => `${name}='${value.replaceAll('\n', '\\n')}'`),
    ...Object.entries(receivers).map(([name, url]) => `# ${name.padEnd(8)} ${url}`),
  ].join('\n')
