// How an app's mail goes out: by its own settings, else by the server's, else it is caught.

import { openCredential, type SealedCredentials } from '../apps/credentials/sealed.ts'
import type { EmailSettings } from '../apps/email-settings.ts'
import { findApp } from '../apps/store.ts'
import type { AppId } from '../lib/ids.ts'
import type { EmailContext, Relay } from './context.ts'

export type MailWay =
  | ({ kind: 'relay'; of: 'app' | 'server'; isCatcher: boolean } & Relay)
  | { kind: 'direct' }
  /** Kept in the development mailbox, and sent nowhere. */
  | { kind: 'catch' }

type Context = Pick<EmailContext, 'db' | 'secrets' | 'mail'>

/** Of an app that is not there: as the server does it. */
export async function findWay(ctx: Context, appId: AppId): Promise<MailWay> {
  const app = await findApp(ctx.db, appId)
  return wayOf(ctx, appId, app?.emailSettings ?? null, app?.credentials ?? {})
}

export function wayOf(
  { secrets, mail }: Pick<Context, 'secrets' | 'mail'>,
  appId: AppId,
  settings: EmailSettings | null,
  credentials: SealedCredentials,
): MailWay {
  if (settings?.mode === 'direct') return { kind: 'direct' }
  if (settings?.mode === 'relay' && settings.relay) {
    const { host, port, tls, username, pool, per_second } = settings.relay
    const password = openCredential(secrets, appId, credentials, 'email')?.secret
    return {
      kind: 'relay',
      of: 'app',
      isCatcher: false,
      host,
      port,
      tls,
      ...(username !== null && password !== undefined && { auth: { user: username, password } }),
      connections: pool,
      ...(per_second !== null && { perSecond: per_second }),
    }
  }
  if (mail.route === 'direct') return { kind: 'direct' }
  return mail.route ? { kind: 'relay', of: 'server', ...mail.route } : { kind: 'catch' }
}

/** Nothing leaves: any domain may be the sender's. */
export const isCaught = (way: MailWay) => way.kind === 'catch' || (way.kind === 'relay' && way.isCatcher)
