import { newId } from '../lib/ids.ts'
import { createQueue } from '../queue/enqueue.ts'
import { closeUnknowns, resendUnknowns, viewUnknowns } from '../reports/unknowns.ts'
import { type CliCommand, type CliInput, readId, UsageError } from './command.ts'
import { type Store, withStore } from './connect.ts'
import { table } from './print.ts'

const ONE = { least: 1, most: 1 }
const WHICH = '--app APP_ID [--subscription SUBSCRIPTION_ID …]'
const FLAGS = { app: 'text', subscription: 'list' } as const
const OPERATOR = { caller: { kind: 'system' }, ip: '' }

const EXAMPLE_APP = '7d0e6c5e-1f0b-4c52-9a53-2b1c2c9b4e0f'
const EXAMPLE_MESSAGE = '0f9f2ab5-8d0b-4d0c-a8d5-6d5f1f6f2a10'

export const deliveriesCommands: CliCommand[] = [
  {
    name: 'deliveries unknown',
    summary: 'List the deliveries of a message whose outcome is unknown.',
    usage: 'MESSAGE_ID --app APP_ID [--limit N]',
    flags: { app: 'text', limit: 'text' },
    words: ONE,
    examples: [`carillon deliveries unknown ${EXAMPLE_MESSAGE} --app ${EXAMPLE_APP}`],
    run: ({ config, given }) => {
      const limit = given.text('limit') ?? '100'
      if (!/^[1-9]\d{0,3}$/.test(limit)) throw new UsageError('--limit must be an integer from 1 to 9999')
      const { app, message } = readWhich(given)
      return withStore(config, async ({ db }) => {
        const { deliveries, next_cursor } = await viewUnknowns({ db }, app, message, { limit: Number(limit) })
        const lines = deliveries.map((it) => [it.subscription_id, it.type, it.settled_at, it.reason ?? ''])
        const more = next_cursor === null ? '' : '\n\nThere are more; see them with a larger --limit.'
        return {
          json: deliveries,
          text:
            deliveries.length === 0
              ? 'There are none.'
              : `${table(['SUBSCRIPTION', 'TYPE', 'SINCE', 'REASON'], lines)}${more}`,
        }
      })
    },
  },
  {
    name: 'deliveries resend',
    summary: 'Send unknown deliveries of a message again, at the risk that some arrive twice.',
    usage: `MESSAGE_ID ${WHICH}`,
    flags: FLAGS,
    words: ONE,
    examples: [`carillon deliveries resend ${EXAMPLE_MESSAGE} --app ${EXAMPLE_APP}`],
    run: ({ config, given }) => {
      const { app, message, body } = readWhich(given)
      return withStore(config, async (store) => {
        const resent = await resendUnknowns(contextOf(store), app, message, body, OPERATOR)
        return { json: { resent }, text: `Deliveries to be sent again: ${resent}.` }
      })
    },
  },
  {
    name: 'deliveries close',
    summary: 'Close unknown deliveries of a message as failed.',
    usage: `MESSAGE_ID ${WHICH}`,
    flags: FLAGS,
    words: ONE,
    examples: [`carillon deliveries close ${EXAMPLE_MESSAGE} --app ${EXAMPLE_APP}`],
    run: ({ config, given }) => {
      const { app, message, body } = readWhich(given)
      return withStore(config, async (store) => {
        const closed = await closeUnknowns(contextOf(store), app, message, body, OPERATOR)
        return { json: { closed }, text: `Deliveries closed: ${closed}.` }
      })
    },
  },
]

const contextOf = ({ db, clock }: Store) => ({ db, clock, queue: createQueue({ clock, newId }) })

function readWhich(given: CliInput) {
  const ids = given.list('subscription').map((id) => readId(id, '--subscription'))
  return {
    app: given.neededId('app'),
    message: readId(given.words[0] as string, 'MESSAGE_ID'),
    body: ids.length > 0 ? { subscription_ids: ids } : {},
  }
}
