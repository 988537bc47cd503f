import { createDnsResolver } from '../channels/dns.ts'
import { loadEvents } from '../email/metrics/load-events.ts'
import { type CliCommand, UsageError } from './command.ts'
import { withStore } from './connect.ts'
import { count } from './print.ts'
import { readLines } from './read-lines.ts'

export const emailEventsCommands: CliCommand[] = [
  {
    name: 'email-events load',
    summary:
      'Import events of email that was sent elsewhere, as JSON lines on standard input. Their domains become active for metrics.',
    usage: '[--mx] [--from LINE] < FILE',
    flags: { mx: 'switch', from: 'text' },
    examples: [
      'carillon email-events load < events.jsonl',
      'carillon email-events load --mx --from 20001 < events.jsonl',
    ],
    run: ({ config, given, input, warn }) => {
      const from = readFrom(given.text('from'))
      return withStore(config, async ({ db, clock }) => {
        const { loaded, refused } = await loadEvents(
          {
            db,
            clock,
            providers: config.inboxProviders,
            ...(given.has('mx') && { resolver: createDnsResolver(config.providers.email.resolver) }),
          },
          readLines(input),
          { from, refuse: (line, reason) => warn(`line ${line}: ${reason}`) },
        )
        return {
          json: { loaded, refused },
          text: `${count(loaded, 'line')} loaded, ${refused} refused.`,
          failed: refused > 0,
        }
      })
    },
  },
]

function readFrom(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new UsageError('--from must be the number of a line')
  return Number(text)
}
