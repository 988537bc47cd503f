import { readFile } from 'node:fs/promises'
import { text as readAll } from 'node:stream/consumers'
import { OPERATOR } from '../apps/audit/actor.ts'
import { findApp } from '../apps/store.ts'
import { createDnsResolver } from '../channels/dns.ts'
import { createEmailContext, type EmailContext } from '../email/context.ts'
import { addDomain, removeDomain, setDomainState } from '../email/domains/change.ts'
import { readHost } from '../email/domains/domain.ts'
import type { DomainAnswer } from '../email/domains/schema.ts'
import { verifyDomain } from '../email/domains/verify.ts'
import { viewDomain, viewDomains } from '../email/domains/view.ts'
import { resumeEmail } from '../email/pause.ts'
import { insertSuppressions, removeSuppression } from '../email/suppressions/change.ts'
import { viewSuppressions } from '../email/suppressions/list.ts'
import { parseAddressList } from '../email/suppressions/parse-address-list.ts'
import { appNotFound } from '../lib/errors.ts'
import { type AppId, newId } from '../lib/ids.ts'
import type { Config } from '../settings/config.ts'
import { NAMELESS } from '../settings/read-email.ts'
import type { CliCommand, CommandOutcome } from './command.ts'
import { withStore } from './connect.ts'
import { openSecrets } from './open-secrets.ts'
import { count, table } from './print.ts'

const ONE = { least: 1, most: 1 }
const APP = '--app 7d0e6c5e-1f0b-4c52-9a53-2b1c2c9b4e0f'

export const emailCommands: CliCommand[] = [
  {
    name: 'email domains add',
    summary: 'Add a sending domain to an app, and print the DNS records that it needs.',
    usage: 'DOMAIN --app APP_ID [--return-path HOST] [--tracking HOST]',
    flags: { app: 'text', 'return-path': 'text', tracking: 'text' },
    words: ONE,
    examples: [`carillon email domains add news.example.com ${APP}`],
    run: ({ config, given }) => {
      refuseNameless(config)
      return withApp(config, given.neededId('app'), async (ctx, appId) => {
        const body = {
          domain: given.words[0] as string,
          return_path_host: given.text('return-path') ?? null,
          tracking_host: given.text('tracking') ?? null,
        }
        const { domain } = await addDomain(ctx, appId, body, OPERATOR)
        return shown(await viewDomain(ctx, appId, domain))
      })
    },
  },
  {
    name: 'email domains list',
    summary: 'List the sending domains of an app.',
    usage: '--app APP_ID',
    flags: { app: 'text' },
    examples: [`carillon email domains list ${APP}`],
    run: ({ config, given }) =>
      withApp(config, given.neededId('app'), async (ctx, appId) => {
        const found = await viewDomains(ctx, appId)
        const lines = found.map(({ domain, state, checked_at }) => [domain, state, checked_at ?? 'never'])
        return {
          json: found,
          text: lines.length === 0 ? 'There are no sending domains.' : table(['DOMAIN', 'STATE', 'CHECKED'], lines),
        }
      }),
  },
  {
    name: 'email domains verify',
    summary: 'Check the DNS records of a sending domain now. Exits with 1 until it is active.',
    usage: 'DOMAIN --app APP_ID',
    flags: { app: 'text' },
    words: ONE,
    examples: [`carillon email domains verify news.example.com ${APP}`],
    run: ({ config, given }) =>
      withApp(config, given.neededId('app'), async (ctx, appId) => {
        const domain = readHost('DOMAIN', given.words[0] as string)
        await verifyDomain(ctx, appId, domain, OPERATOR)
        const after = await viewDomain(ctx, appId, domain)
        return { ...shown(after), failed: after.state !== 'active' }
      }),
  },
  {
    name: 'email domains activate',
    summary:
      'Resume a paused sending domain. --force also activates one whose DNS is private or whose relay signs by itself.',
    usage: 'DOMAIN --app APP_ID [--force]',
    flags: { app: 'text', force: 'switch' },
    words: ONE,
    examples: [`carillon email domains activate news.example.com ${APP} --force`],
    run: ({ config, given }) =>
      withApp(config, given.neededId('app'), async (ctx, appId) => {
        const domain = readHost('DOMAIN', given.words[0] as string)
        await setDomainState(ctx, appId, domain, { state: 'active', force: given.has('force') }, OPERATOR)
        return shown(await viewDomain(ctx, appId, domain))
      }),
  },
  {
    name: 'email domains remove',
    summary: 'Remove a sending domain of an app, and its keys.',
    usage: 'DOMAIN --app APP_ID',
    flags: { app: 'text' },
    words: ONE,
    examples: [`carillon email domains remove news.example.com ${APP}`],
    run: ({ config, given }) =>
      withApp(config, given.neededId('app'), async (ctx, appId) => {
        const domain = readHost('DOMAIN', given.words[0] as string)
        await removeDomain(ctx, appId, domain, OPERATOR)
        return { json: { removed: domain }, text: 'The domain is removed.' }
      }),
  },
  {
    name: 'email suppressions list',
    summary: 'List the most recent suppressed addresses of an app, or look one up.',
    usage: '--app APP_ID [--address ADDRESS]',
    flags: { app: 'text', address: 'text' },
    examples: [`carillon email suppressions list ${APP} --address ann@example.com`],
    run: ({ config, given }) =>
      withApp(config, given.neededId('app'), async (ctx, appId) => {
        const address = given.text('address')
        const { suppressions, next_cursor } = await viewSuppressions(ctx.db, appId, {
          limit: 1_000,
          ...(address !== undefined && { address }),
        })
        const lines = suppressions.map((it) => [it.address, it.reason, it.created_at])
        const more = next_cursor === null ? '' : '\n\nThese are the newest 1,000; the interface has all of them.'
        return {
          json: suppressions,
          text: lines.length === 0 ? 'There are none.' : `${table(['ADDRESS', 'REASON', 'SINCE'], lines)}${more}`,
        }
      }),
  },
  {
    name: 'email suppressions import',
    summary:
      'Add the addresses in a file or on standard input to the suppression list: one per line, or the first column of a CSV.',
    usage: '--app APP_ID [--file FILE]',
    flags: { app: 'text', file: 'text' },
    examples: [`carillon email suppressions import ${APP} --file unsubscribed.csv`],
    run: ({ config, given }) =>
      withApp(config, given.neededId('app'), async (ctx, appId) => {
        const file = given.text('file')
        const addresses = parseAddressList(
          file === undefined ? await readAll(process.stdin) : await readFile(file, 'utf8'),
        )
        let added = 0
        for (let at = 0; at < addresses.length; at += AT_ONCE) {
          const some = addresses.slice(at, at + AT_ONCE)
          added += await insertSuppressions(ctx, appId, { addresses: some, reason: 'imported' }, OPERATOR)
        }
        const known = addresses.length - added
        return {
          json: { addresses: addresses.length, added },
          text: `${count(added, 'address', 'addresses')} added${known > 0 ? `, ${known} known already` : ''}.`,
        }
      }),
  },
  {
    name: 'email suppressions remove',
    summary: 'Let an app send to an address again.',
    usage: 'ADDRESS --app APP_ID',
    flags: { app: 'text' },
    words: ONE,
    examples: [`carillon email suppressions remove ann@example.com ${APP}`],
    run: ({ config, given }) =>
      withApp(config, given.neededId('app'), async (ctx, appId) => {
        const address = (given.words[0] as string).toLowerCase()
        await removeSuppression(ctx, appId, address, OPERATOR)
        return { json: { removed: address }, text: 'The address is off the list.' }
      }),
  },
  {
    name: 'email resume',
    summary: 'Resume the email of an app that was paused because of too many complaints.',
    usage: '--app APP_ID',
    flags: { app: 'text' },
    examples: [`carillon email resume ${APP}`],
    run: ({ config, given }) =>
      withApp(config, given.neededId('app'), async (ctx, appId) => {
        const wasPaused = await resumeEmail(ctx, appId, OPERATOR)
        return { json: { resumed: wasPaused }, text: wasPaused ? 'Email goes on.' : 'Email was not paused.' }
      }),
  },
]

const AT_ONCE = 10_000

/** The DNS records of a domain name this server, so a name that cannot be resolved must not be published in them. */
function refuseNameless({ providers }: Config): void {
  if (providers.email.helo === NAMELESS)
    throw new Error(
      'the DNS records of a sending domain name this server, and it has no name yet: give this command the PUBLIC_URL that the server has, or a MAIL_HELO such as mail.example.com',
    )
}

const withApp = (config: Config, appId: AppId, run: (ctx: EmailContext, appId: AppId) => Promise<CommandOutcome>) =>
  withStore(config, async (store) => {
    const { db, clock } = store
    if (!(await findApp(db, appId))) throw appNotFound()
    const { email: mail } = config.providers
    const ctx = createEmailContext({
      db,
      clock,
      newId,
      secrets: await openSecrets(store, config),
      resolver: createDnsResolver(mail.resolver),
      serverEmail: mail,
      publicUrl: config.publicUrl,
      port: config.port,
      // No command configures a relay.
      mayReach: () => false,
    })
    return run(ctx, appId)
  })

const shown = (it: DomainAnswer): CommandOutcome => ({
  json: it,
  text: [
    `${it.domain} is ${it.state}.`,
    '',
    ...it.records.map(({ type, name, value, state, required, found }) =>
      [
        `${state.padEnd(9)} ${type} ${name}${required ? '' : ' (not required)'}`,
        `          ${value}`,
        ...(found !== null && state !== 'ok' ? [`          found: ${found}`] : []),
      ].join('\n'),
    ),
  ].join('\n'),
})
