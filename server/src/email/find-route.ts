// Finds an app's email route: its own settings, or else the server's; without either, mail is caught.

import { openCredential, type SealedCredentials } from '../apps/credentials/sealed.ts'
import type { EmailSettings } from '../apps/email-settings.ts'
import { findApp } from '../apps/store.ts'
import type { AppId } from '../lib/ids.ts'
import type { EmailContext, EmailRelay } from './context.ts'

export type ResolvedEmailRoute =
  | ({ kind: 'relay'; of: 'app' | 'server'; isCatcher: boolean } & EmailRelay)
  | { kind: 'direct' }
  /** Mail is kept in the development mailbox and sent nowhere. */
  | { kind: 'catch' }

type RouteContext = Pick<EmailContext, 'db' | 'secrets' | 'serverEmail'>

/** Falls back to the server's route when the app does not exist. */
export async function findEmailRoute(ctx: RouteContext, appId: AppId): Promise<ResolvedEmailRoute> {
  const app = await findApp(ctx.db, appId)
  return resolveEmailRoute(ctx, appId, app?.emailSettings ?? null, app?.credentials ?? {})
}

export function resolveEmailRoute(
  { secrets, serverEmail }: Pick<RouteContext, 'secrets' | 'serverEmail'>,
  appId: AppId,
  settings: EmailSettings | null,
  credentials: SealedCredentials,
): ResolvedEmailRoute {
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
  if (serverEmail.route === 'direct') return { kind: 'direct' }
  return serverEmail.route ? { kind: 'relay', of: 'server', ...serverEmail.route } : { kind: 'catch' }
}

/** No mail leaves the server, so any sender domain is allowed. */
export const isCatchRoute = (route: ResolvedEmailRoute) =>
  route.kind === 'catch' || (route.kind === 'relay' && route.isCatcher)
