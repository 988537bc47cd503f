import { OPERATOR } from '../apps/audit/actor.ts'
import { findApp } from '../apps/store.ts'
import { appNotFound } from '../lib/errors.ts'
import { type AppId, newId } from '../lib/ids.ts'
import { addAdministrator, removeAdministrator } from '../sending/administrators.ts'
import { enableSending, pauseSending, resumeSending } from '../sending/control.ts'
import { pauseServer, resumeServer } from '../sending/control-server.ts'
import { findAdministrators } from '../sending/notice-store.ts'
import type { ServerSending } from '../sending/store.ts'
import { administratorObject, viewSending } from '../sending/view.ts'
import { type CliCommand, type CliInput, type CommandOutcome, readId, UsageError } from './command.ts'
import { type Store, withStore } from './connect.ts'
import { openSecrets } from './open-secrets.ts'
import { fields, table } from './print.ts'

const ONE = { least: 1, most: 1 }

export const sendingCommands: CliCommand[] = [
  {
    name: 'pause',
    summary: 'Hold all sending, of one app or of the whole server, until it is resumed. Survives restarts.',
    usage: '[--app APP_ID]',
    flags: { app: 'text' },
    examples: ['carillon pause', 'carillon pause --app 7d0e6c5e-1f0b-4c52-9a53-2b1c2c9b4e0f'],
    run: ({ config, given }) => {
      const appId = given.id('app')
      return withStore(config, async (store) => {
        if (appId === undefined) return serverState(await pauseServer(control(store)))
        await present(store, appId)
        await pauseSending(control(store), appId, OPERATOR)
        return appState(store, appId)
      })
    },
  },
  {
    name: 'resume',
    summary:
      'Resume sending. After a restore, use --send to send what is due, or --discard to drop what was due before now.',
    usage: '[--app APP_ID | --send | --discard]',
    flags: { app: 'text', send: 'switch', discard: 'switch' },
    examples: [
      'carillon resume',
      'carillon resume --discard',
      'carillon resume --app 7d0e6c5e-1f0b-4c52-9a53-2b1c2c9b4e0f',
    ],
    run: ({ config, given }) => {
      const appId = given.id('app')
      const choices = (['send', 'discard'] as const).filter((choice) => given.has(choice))
      if (choices.length > 1 || (appId !== undefined && choices.length > 0))
        throw new UsageError('"resume" takes one of --app, --send and --discard')
      return withStore(config, async (store) => {
        if (appId === undefined) return serverState(await resumeServer(control(store), choices[0]))
        await present(store, appId)
        await resumeSending(control(store), appId, OPERATOR)
        return appState(store, appId)
      })
    },
  },
  {
    name: 'sending show',
    summary: 'Show whether an app is sending, why not, and how much of its application message limit is used.',
    usage: 'APP_ID | --app APP_ID',
    flags: { app: 'text' },
    words: { least: 0, most: 1 },
    examples: ['carillon sending show 7d0e6c5e-1f0b-4c52-9a53-2b1c2c9b4e0f'],
    run: ({ config, given }) => {
      const appId = neededApp(given, 'sending show')
      return withStore(config, async (store) => {
        await present(store, appId)
        return appState(store, appId)
      })
    },
  },
  {
    name: 'sending enable',
    summary: 'Re-enable an app that exceeded its application message limit. Its usage starts again at zero.',
    usage: 'APP_ID | --app APP_ID',
    flags: { app: 'text' },
    words: { least: 0, most: 1 },
    examples: ['carillon sending enable 7d0e6c5e-1f0b-4c52-9a53-2b1c2c9b4e0f'],
    run: ({ config, given }) => {
      const appId = neededApp(given, 'sending enable')
      return withStore(config, async (store) => {
        await present(store, appId)
        await enableSending(control(store), appId, OPERATOR)
        return appState(store, appId)
      })
    },
  },
  {
    name: 'administrator add',
    summary: 'Add an administrator, who is notified when an app is disabled.',
    usage: '--app APP_ID [--email ADDRESS] [--webhook-url URL]',
    flags: { app: 'text', email: 'text', 'webhook-url': 'text' },
    examples: [
      'carillon administrator add --app 7d0e6c5e-1f0b-4c52-9a53-2b1c2c9b4e0f --email ops@example.com --webhook-url https://example.com/notices',
    ],
    run: ({ config, given }) => {
      const appId = given.neededId('app')
      const draft = { email: given.text('email'), webhookUrl: given.text('webhook-url') }
      return withStore(config, async (store) => {
        await present(store, appId)
        const ctx = { ...control(store), newId, secrets: await openSecrets(store, config) }
        const added = await addAdministrator(ctx, appId, draft, OPERATOR)
        const secret = added.webhookSecret
        return {
          json: { ...administratorObject(added), webhook_secret: secret },
          text: `${fields([
            ['administrator id', added.id],
            ['email', added.email ?? 'none'],
            ['webhook', added.webhookUrl ?? 'none'],
            ...(secret === null ? [] : [['webhook secret', secret] as [string, string]]),
          ])}${secret === null ? '' : '\n\nThe secret is shown this once; the receiver verifies notices with it.'}`,
        }
      })
    },
  },
  {
    name: 'administrator list',
    summary: 'List the administrators of an app.',
    usage: '--app APP_ID',
    flags: { app: 'text' },
    examples: ['carillon administrator list --app 7d0e6c5e-1f0b-4c52-9a53-2b1c2c9b4e0f'],
    run: ({ config, given }) => {
      const appId = given.neededId('app')
      return withStore(config, async (store) => {
        await present(store, appId)
        const found = await findAdministrators(store.db, appId)
        return {
          json: found.map(administratorObject),
          text:
            found.length === 0
              ? 'There are no administrators.'
              : table(
                  ['ADMINISTRATOR', 'EMAIL', 'WEBHOOK'],
                  found.map(({ id, email, webhookUrl }) => [id, email ?? '', webhookUrl ?? '']),
                ),
        }
      })
    },
  },
  {
    name: 'administrator remove',
    summary: 'Remove an administrator of an app.',
    usage: 'ADMINISTRATOR_ID --app APP_ID',
    flags: { app: 'text' },
    words: ONE,
    examples: [
      'carillon administrator remove 91c0f1de-70d3-4f3c-8a64-3a0a4b0b4c11 --app 7d0e6c5e-1f0b-4c52-9a53-2b1c2c9b4e0f',
    ],
    run: ({ config, given }) => {
      const appId = given.neededId('app')
      const id = readId(given.words[0] as string, 'ADMINISTRATOR_ID')
      return withStore(config, async (store) => {
        await removeAdministrator({ ...control(store), newId }, appId, id, OPERATOR)
        return { json: { removed: id }, text: 'The administrator is removed.' }
      })
    },
  },
]

const control = ({ db, clock }: Store) => ({ db, now: clock.now })

/** The app is given as a word, or by the flag that other commands use. */
function neededApp({ words: [word], id }: CliInput, command: string): AppId {
  const named = id('app')
  if ((word === undefined) === (named === undefined))
    throw new UsageError(`"${command}" takes one app: APP_ID or --app APP_ID`)
  return named ?? readId(word as string, 'APP_ID')
}

async function present({ db }: Store, appId: AppId) {
  if (!(await findApp(db, appId))) throw appNotFound()
}

async function appState(store: Store, appId: AppId): Promise<CommandOutcome> {
  const sending = await viewSending(control(store), appId)
  const { hold, usage } = sending
  return {
    json: { app_id: appId, ...sending },
    text: fields([
      ['app id', appId],
      ['state', hold ? `held: ${hold.reason} since ${hold.since}` : 'sending'],
      ...(hold?.until ? [['until', hold.until] as [string, string]] : []),
      ['used', `${usage.used} of ${usage.limit} messages within ${usage.window_seconds / 60} minutes`],
    ]),
  }
}

function serverState({ pausedAt, restoredAt, discardBefore }: ServerSending): CommandOutcome {
  const held = restoredAt
    ? `held after a restore since ${restoredAt.toISOString()}`
    : pausedAt && `held: paused since ${pausedAt.toISOString()}`
  return {
    json: { paused_since: pausedAt, restored_since: restoredAt, discard_before: discardBefore },
    text: `Sending of this server: ${held ?? 'goes on'}.`,
  }
}
