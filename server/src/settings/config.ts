// All settings, each with name, default and help text. They are read once, validated, and passed on as plain values.
// Each can be an environment variable (PORT=8080) or a flag (--port 8080); the flag wins.

import type { ProviderSettings } from '../channels/providers.ts'
import type { ProviderList } from '../email/inbox-providers/providers.ts'
import { isUuidV4 } from '../lib/ids.ts'
import { readHelo, readResolver, readSmtpUrl } from './read-email.ts'
import { readInboxProviders } from './read-inbox-providers.ts'
import {
  type ProviderParts,
  readCertificates,
  readConnect,
  readNetworks,
  readVapidSubject,
  toProviders,
} from './read-providers.ts'

export type LimitsProfile = 'default' | 'spec' | 'off'
export type Role = 'all' | 'api' | 'worker'
export type LogFormat = 'json' | 'pretty'

type Settings = ProviderParts & {
  port: number
  host: string
  dataDir: string
  databaseUrl: string | undefined
  limits: LimitsProfile
  logLevel: string
  logFormat: LogFormat | undefined
  secretKey: string | undefined
  role: Role
  trustProxy: boolean | string
  metricsToken: string | undefined
  requestBodyMb: number
  unsafeDurability: boolean
  allowUnreadableSecrets: boolean
  eventRetentionDays: number
  deliveryRetentionDays: number
  maxInFlight: number
  renderProcesses: number | undefined
  journeyMinWaitSeconds: number
  drainSeconds: number | undefined
  databaseConnections: number | undefined
  countingConnections: number | undefined
  audienceConnections: number | undefined
  inboxProviders: ProviderList | undefined
  mailListen: { host: string; port: number } | undefined
  emailAttachmentsMb: number
  organizationId: string | undefined
  organizationKey: string | undefined
  defaultPlan: 'free' | 'paid'
  sink: boolean
}

export type Config = Settings & {
  /** Derived from the settings, for the channels. */
  providers: ProviderSettings
}

export class ConfigError extends Error {}

type Setting<Value> = { env: string; fallback: Value; help: string; read: (text: string) => Value }

const oneOf =
  <Word extends string>(...words: Word[]) =>
  (text: string): Word => {
    if (!words.includes(text as Word)) throw new ConfigError(`must be one of ${words.join(', ')}`)
    return text as Word
  }

const port = (text: string) => {
  const number = Number(text)
  if (!/^\d+$/.test(text) || number > 65_535) throw new ConfigError('must be a port number from 0 to 65535')
  return number
}

const wholeNumber = (least: number, most: number) => (text: string) => {
  const number = Number(text)
  if (!/^\d{1,9}$/.test(text) || number < least || number > most)
    throw new ConfigError(`must be an integer from ${least} to ${most}`)
  return number
}

const isYesOrNo = (text: string | undefined) => /^(1|true|yes|on|0|false|no|off)$/i.test(text ?? '')

const flag = (text: string) => {
  if (!isYesOrNo(text)) throw new ConfigError('must be true or false')
  return /^(1|true|yes|on)$/i.test(text)
}

const url =
  (...schemes: string[]) =>
  (text: string) => {
    if (!URL.canParse(text) || !schemes.includes(new URL(text).protocol))
      throw new ConfigError(`must be a URL that begins with ${schemes.map((scheme) => `${scheme}//`).join(' or ')}`)
    return text
  }

const longEnough = (length: number) => (text: string) => {
  if (text.length < length) throw new ConfigError(`must have at least ${length} characters`)
  return text
}

const uuid = (text: string) => {
  if (!isUuidV4(text)) throw new ConfigError('must be a UUID v4')
  return text.toLowerCase()
}

/** Accepts `0.0.0.0:25` and `[::]:2525`. */
const hostAndPort = (text: string) => {
  const [, v6, name, digits = ''] = /^(?:\[([0-9a-f:.]+)\]|([\w.-]+)):(\d{1,5})$/i.exec(text) ?? []
  const host = v6 ?? name
  if (host === undefined || Number(digits) > 65_535) throw new ConfigError('must be host:port, such as 0.0.0.0:25')
  return { host, port: Number(digits) }
}

/** Accepts true, false, or a comma-separated list of addresses and networks. */
const proxies = (text: string) => (isYesOrNo(text) ? flag(text) : text)

export const settings: { [Name in keyof Settings]: Setting<Settings[Name]> } = {
  port: { env: 'PORT', fallback: 3000, read: port, help: 'Port to listen on. 0 picks a free one.' },
  host: { env: 'HOST', fallback: '0.0.0.0', read: String, help: 'Address to listen on.' },
  dataDir: {
    env: 'DATA_DIR',
    fallback: './data',
    read: longEnough(1),
    help: 'Directory for the embedded PostgreSQL, the first keys and the secret key.',
  },
  databaseUrl: {
    env: 'DATABASE_URL',
    fallback: undefined,
    read: url('postgres:', 'postgresql:'),
    help: 'PostgreSQL (15 or newer) to use instead of the embedded one.',
  },
  publicUrl: {
    env: 'PUBLIC_URL',
    fallback: undefined,
    read: url('http:', 'https:'),
    help: 'Public URL of this server, used for links in messages and for callbacks from providers.',
  },
  limits: {
    env: 'LIMITS',
    fallback: 'default',
    read: oneOf('default', 'spec', 'off'),
    help: 'Request rate limits: "default" averages the two limits of 1 request/second over a minute, "spec" enforces them per second, "off" disables all limits, for load tests.',
  },
  logLevel: {
    env: 'LOG_LEVEL',
    fallback: 'info',
    read: oneOf('silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'),
    help: 'Lowest level to log. "debug" logs every request.',
  },
  logFormat: {
    env: 'LOG_FORMAT',
    fallback: undefined,
    read: oneOf('json', 'pretty'),
    help: 'Format of the log on standard error: "json" for machines, "pretty" for people. Defaults to "pretty" on a terminal and to "json" elsewhere.',
  },
  secretKey: {
    env: 'SECRET_KEY',
    fallback: undefined,
    read: longEnough(16),
    help: 'Encrypts provider credentials at rest. Generated and stored in DATA_DIR when not set. "new,old" rotates the key.',
  },
  role: {
    env: 'ROLE',
    fallback: 'all',
    read: oneOf('all', 'api', 'worker'),
    help: 'What this process runs: "api" answers requests, "worker" runs background jobs, "all" does both.',
  },
  trustProxy: {
    env: 'TRUST_PROXY',
    fallback: false,
    read: proxies,
    help: 'Reads the client address from X-Forwarded-For: "true", or the addresses of trusted proxies.',
  },
  metricsToken: {
    env: 'METRICS_TOKEN',
    fallback: undefined,
    read: longEnough(16),
    help: 'Token for reading /metrics with "Authorization: Bearer <token>".',
  },
  requestBodyMb: {
    env: 'REQUEST_BODY_MB',
    fallback: 32,
    read: wholeNumber(16, 65_536),
    help: 'Memory for the bodies of requests in flight, in MB per process. Half of it is reserved for bodies of up to 64 KB. One client address may hold an eighth; further bodies wait for up to 30 s and are then refused with 429 or 503 and Retry-After.',
  },
  unsafeDurability: {
    env: 'UNSAFE_DURABILITY',
    fallback: false,
    read: flag,
    help: 'Starts even if the database may lose acknowledged writes (fsync, full_page_writes or synchronous_commit is off).',
  },
  allowUnreadableSecrets: {
    env: 'ALLOW_UNREADABLE_SECRETS',
    fallback: false,
    read: flag,
    help: 'Starts even if SECRET_KEY cannot decrypt every stored secret, for when the old key is lost. Secrets that cannot be decrypted must be set again.',
  },
  eventRetentionDays: {
    env: 'EVENT_RETENTION_DAYS',
    fallback: 400,
    read: wholeNumber(1, 3_650),
    help: 'How long custom events are kept. They are deleted by whole months. Must be the same on every server.',
  },
  deliveryRetentionDays: {
    env: 'DELIVERY_RETENTION_DAYS',
    fallback: 400,
    // Recipients can unsubscribe by email for 60 days, and delivery may have been attempted for 28 days before.
    read: wholeNumber(90, 3_650),
    help: 'How long messages and their deliveries are kept. Deliveries are deleted by whole months. At least 90. Must be the same on every server.',
  },
  maxInFlight: {
    env: 'MAX_IN_FLIGHT',
    fallback: 400,
    read: wholeNumber(4, 10_000),
    help: 'Messages that one app may have in flight to one provider, per process; all apps together may have five times as many. If the process is killed, at most this many deliveries per app and provider become unknown.',
  },
  renderProcesses: {
    env: 'RENDER_PROCESSES',
    fallback: undefined,
    read: wholeNumber(2, 64),
    help: 'Maximum number of template rendering processes, for the API and again for the worker; each takes about 60 MB. One of them is reserved for direct messages and previews. Defaults to the number of cores, but at least 2. They start on demand, and all but one stop after a minute without work.',
  },
  journeyMinWaitSeconds: {
    env: 'JOURNEY_MIN_WAIT_SECONDS',
    fallback: 60,
    read: wholeNumber(1, 60),
    help: 'Shortest wait that a journey may have. The API documents 60; lower values are for trying journeys out.',
  },
  drainSeconds: {
    env: 'DRAIN_SECONDS',
    fallback: undefined,
    read: wholeNumber(0, 300),
    help: 'How long a stopping server still accepts requests while /ready answers 503, so that a load balancer can notice. Defaults to 5 with DATABASE_URL and to 0 with the embedded PostgreSQL.',
  },
  databaseConnections: {
    env: 'DATABASE_CONNECTIONS',
    fallback: undefined,
    read: wholeNumber(12, 1_000),
    help: 'Maximum number of database connections of this process. Defaults to 15, or to 30 with the embedded PostgreSQL, which no other server uses.',
  },
  countingConnections: {
    env: 'COUNTING_CONNECTIONS',
    fallback: undefined,
    read: wholeNumber(2, 50),
    help: 'Connections reserved for requests that count audiences. One app can use all but one of them. Defaults to a share of DATABASE_CONNECTIONS.',
  },
  audienceConnections: {
    env: 'AUDIENCE_CONNECTIONS',
    fallback: undefined,
    read: wholeNumber(2, 50),
    help: 'Connections reserved for jobs that find the audiences of messages, journeys and exports. One app can use all but one of them. Defaults to a share of DATABASE_CONNECTIONS.',
  },
  mailListen: {
    env: 'MAIL_LISTEN',
    fallback: undefined,
    read: hostAndPort,
    help: 'Address that receives bounces, complaints and unsubscribe requests by email, such as 0.0.0.0:25. Not set: nothing is received.',
  },
  providerCa: {
    env: 'PROVIDER_CA',
    fallback: undefined,
    read: readCertificates,
    help: 'Additional CA certificates to trust when calling providers: a PEM file or its content.',
  },
  providerConnect: {
    env: 'PROVIDER_CONNECT',
    fallback: undefined,
    read: readConnect,
    help: 'Redirects connections to providers, separated by commas: https://api.push.apple.com=127.0.0.1:7001. https://* matches every other host.',
  },
  outboundAllow: {
    env: 'OUTBOUND_ALLOW',
    fallback: undefined,
    read: readNetworks,
    help: 'Private networks that webhooks, attachments, SMS providers and the relays of apps may use: 10.1.0.0/16,127.0.0.1.',
  },
  outboundAllowHttp: {
    env: 'OUTBOUND_ALLOW_HTTP',
    fallback: false,
    read: flag,
    help: 'Allows plain HTTP to the networks in OUTBOUND_ALLOW. All other requests always use HTTPS.',
  },
  twilioUrl: {
    env: 'TWILIO_URL',
    fallback: 'https://api.twilio.com',
    read: url('https:', 'http:'),
    help: 'Base URL of Twilio or of a compatible service. Applies to all apps.',
  },
  vapidSubject: {
    env: 'VAPID_SUBJECT',
    fallback: undefined,
    read: readVapidSubject,
    help: 'Contact that browser push services may reach about this server: mailto:you@example.com. Defaults to PUBLIC_URL if that is HTTPS.',
  },
  smtpUrl: {
    env: 'SMTP_URL',
    fallback: undefined,
    read: readSmtpUrl,
    help: 'Route for the email of apps without a relay of their own: smtp://user:password@host:587, smtps://…, or "direct:" for delivery to the recipients’ servers. Not set: email is caught in the development mailbox instead of being sent.',
  },
  mailHelo: {
    env: 'MAIL_HELO',
    fallback: undefined,
    read: readHelo,
    help: 'Host name used in SMTP greetings and in return paths: mail.example.com. Defaults to the host of PUBLIC_URL.',
  },
  resolver: {
    env: 'RESOLVER',
    fallback: undefined,
    read: readResolver,
    help: 'DNS server for email-related lookups, such as 127.0.0.1:5353. Defaults to the servers of the system.',
  },
  inboxProviders: {
    env: 'INBOX_PROVIDERS',
    fallback: undefined,
    read: readInboxProviders,
    help: 'JSON file of inbox providers that take precedence over the built-in list: {"providers": {"gmail": {"domains": [], "domain_suffixes": [], "mx_suffixes": []}}}.',
  },
  emailAttachmentsMb: {
    env: 'EMAIL_ATTACHMENTS_MB',
    fallback: 0,
    read: wholeNumber(0, 20),
    help: 'Maximum total size of the attachments of one email, in MB; the server downloads them from the URLs in the message. 0 refuses email with attachments. Must be the same on every server.',
  },
  defaultPlan: {
    env: 'DEFAULT_PLAN',
    fallback: 'paid',
    read: oneOf('paid', 'free'),
    help: 'Plan of new apps, which determines their rate limits; "free" is for operators who resell the service. "carillon app set --plan" changes the plan of one app.',
  },
  sink: {
    env: 'SINK',
    fallback: false,
    read: flag,
    help: 'For trials: runs stand-ins for all providers beside the server. Apps without credentials get the stand-ins’ credentials at startup and on creation, and nothing leaves this machine.',
  },
  organizationId: {
    env: 'CARILLON_ORG_ID',
    fallback: undefined,
    read: uuid,
    help: 'ID of the first organization. Generated when not set.',
  },
  organizationKey: {
    env: 'CARILLON_ORG_KEY',
    fallback: undefined,
    read: longEnough(32),
    help: 'Key of the first organization. Generated when not set.',
  },
}

export const flagName = (env: string) => `--${env.toLowerCase().replaceAll('_', '-')}`

/** Reads settings from the environment and from flags. `rest` holds the arguments that are not settings. */
export function readConfig(
  env: Record<string, string | undefined>,
  args: readonly string[] = [],
): { config: Config; rest: string[] } {
  const { flags, rest } = splitFlags(args)
  const entries = Object.entries(settings).map(([name, setting]) => {
    const fromFlag = flags.get(setting.env)
    const text = fromFlag ?? env[setting.env]
    // An empty variable counts as unset: that is how compose files and shells omit a setting.
    if (text === undefined || text === '') return [name, setting.fallback]
    try {
      return [name, (setting as Setting<unknown>).read(text)]
    } catch (error) {
      throw new ConfigError(
        `${fromFlag === undefined ? setting.env : flagName(setting.env)} ${(error as Error).message}`,
      )
    }
  })
  const values = Object.fromEntries(entries) as Settings
  return { config: { ...values, providers: toProviders(values) }, rest }
}

function splitFlags(args: readonly string[]) {
  const byFlag = new Map(Object.values(settings).map((setting) => [flagName(setting.env), setting]))
  const flags = new Map<string, string>()
  const rest: string[] = []
  for (let i = 0; i < args.length; i++) {
    const [name = '', inline] = (args[i] as string).split(/=(.*)/s)
    const setting = byFlag.get(name)
    if (setting === undefined) rest.push(args[i] as string)
    // `--sink` alone means true; a following word that is not a boolean belongs to the next argument.
    else if (setting.read === flag && !isYesOrNo(inline ?? args[i + 1])) flags.set(setting.env, inline ?? 'true')
    else {
      const value = inline ?? args[++i]
      if (value === undefined) throw new ConfigError(`${name} needs a value`)
      flags.set(setting.env, value)
    }
  }
  return { flags, rest }
}
