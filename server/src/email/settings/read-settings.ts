// Validates an app's email settings as a request supplies them. What cannot work is refused at once, naming the field.

import { isIP } from 'node:net'
import type { EmailRelaySettings, EmailSettings } from '../../apps/email-settings.ts'
import { MASK } from '../../apps/schema.ts'
import { AppError, invalid, type Problem } from '../../lib/errors.ts'
import { isEmail } from '../../users/subscriptions/subscription.ts'
import type { EmailContext } from '../context.ts'
import { normalizeHost } from '../domains/domain.ts'
import type { EmailSettingsBody, RelayBody } from './schema.ts'

export type EmailSettingsInput = { settings: EmailSettings; password: string | undefined }

/** Of the privileged ports, only those of mail are allowed, because the others belong to other services. */
const LOW_PORTS = new Set([25, 465, 587])
const DEFAULT_CONNECTIONS = 5

/** Throws all problems at once. */
export function readEmailSettings(ctx: Pick<EmailContext, 'mayReach'>, body: EmailSettingsBody): EmailSettingsInput {
  const problems: Problem[] = []
  const refuse = (title: string) => problems.push(...invalid(title).problems)
  const given = body.relay ?? null
  const relay = given && readRelay(ctx, given, refuse)
  const mode = body.mode === undefined ? (relay ? 'relay' : null) : body.mode
  if (mode === 'relay' && !relay) refuse('relay is required with mode "relay"')
  if (mode !== 'relay' && relay) refuse('mode must be "relay" where a relay is given')
  const fromAddress = body.from_address || null
  if (fromAddress !== null && !isEmail(fromAddress)) refuse('from_address must be an email address')
  const fromName = body.from_name || null
  if (fromName !== null && /\p{Cc}/u.test(fromName)) refuse('from_name must be a line of text')
  if (problems.length > 0) throw new AppError('invalid', ...problems)
  const password = given?.password || MASK
  return {
    settings: { mode, relay, from_address: fromAddress, from_name: fromName },
    password: password === MASK ? undefined : password,
  }
}

function readRelay(
  { mayReach }: Pick<EmailContext, 'mayReach'>,
  body: RelayBody,
  refuse: (title: string) => void,
): EmailRelaySettings {
  const literal = body.host.replace(/^\[|\]$/g, '')
  const isLiteral = isIP(literal) !== 0
  const host = isLiteral ? literal : normalizeHost(body.host)
  if (host === undefined) refuse('relay.host must be the full name or the address of a host')
  else if (isLiteral && !mayReach(host)) refuse('relay.host must not be a private address')
  const tls = body.tls ?? (body.port === 465 ? 'implicit' : 'starttls')
  const port = body.port ?? (tls === 'implicit' ? 465 : 587)
  if (port < 1_024 && !LOW_PORTS.has(port)) refuse('relay.port must be 25, 465, 587, or 1024 and above')
  const username = body.username || null
  const hasPassword = Boolean(body.password)
  if (username === null && hasPassword) refuse('relay.username is required with relay.password')
  if (username !== null && /\p{Cc}/u.test(`${username}${body.password ?? ''}`))
    refuse('relay.username and relay.password must not hold control characters')
  if (username !== null && (tls === 'none' || tls === 'opportunistic'))
    refuse(`relay.tls must be "starttls" or "implicit" with relay.username: the password could be read on its way`)
  return {
    host: host ?? '',
    port,
    tls,
    username,
    pool: body.pool ?? DEFAULT_CONNECTIONS,
    per_second: body.per_second ?? null,
  }
}

/** A stored password is kept only while the relay stays the same. Sent to a different one, it would be disclosed. */
export const isSameRelay = (a: EmailRelaySettings, b: EmailRelaySettings) =>
  (['host', 'port', 'tls', 'username'] as const).every((name) => a[name] === b[name])
