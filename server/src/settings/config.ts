// Every setting, in one place: name, default, meaning. Read once, checked, passed on as plain values.
// Each can be given as an environment variable (PORT=8080) or as a flag (--port 8080); the flag wins.

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
  /** What the channels are given. */
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
  if (!/^\d+$/.test(text) || number > 65_535) throw new ConfigError('must be a port number, 0 to 65535')
  return number
}

const wholeNumber = (least: number, most: number) => (text: string) => {
  const number = Number(text)
  if (!/^\d{1,9}$/.test(text) || number < least || number > most)
    throw new ConfigError(`must be a whole number from ${least} to ${most}`)
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
      throw new ConfigError(
        `must be an address that begins with ${schemes.map((scheme) => `${scheme}//`).join(' or ')}`,
      )
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

/** `0.0.0.0:25`, `[::]:2525`. */
const hostAndPort = (text: string) => {
  const [, v6, name, digits = ''] = /^(?:\[([0-9a-f:.]+)\]|([\w.-]+)):(\d{1,5})$/i.exec(text) ?? []
  const host = v6 ?? name
  if (host === undefined || Number(digits) > 65_535) throw new ConfigError('must be host:port, as 0.0.0.0:25')
  return { host, port: Number(digits) }
}

/** true, false, or a comma-separated list of addresses and networks. */
const proxies = (text: string) => (isYesOrNo(text) ? flag(text) : text)

export const settings: { [Name in keyof Settings]: Setting<Settings[Name]> } = {
  port: { env: 'PORT', fallback: 3000, read: port, help: 'Port to serve on; 0 takes any free one.' },
  host: { env: 'HOST', fallback: '0.0.0.0', read: String, help: 'Address to listen on.' },
  dataDir: {
    env: 'DATA_DIR',
    fallback: './data',
    read: longEnough(1),
    help: 'Folder for the embedded PostgreSQL, the first keys and the secret key.',
  },
  databaseUrl: {
    env: 'DATABASE_URL',
    fallback: undefined,
    read: url('postgres:', 'postgresql:'),
    help: 'Use this PostgreSQL (15 or newer) instead of the embedded one.',
  },
  publicUrl: {
    env: 'PUBLIC_URL',
    fallback: undefined,
    read: url('http:', 'https:'),
    help: 'Address under which the world reaches this server, for links in messages and for calls of providers.',
  },
  limits: {
    env: 'LIMITS',
    fallback: 'default',
    read: oneOf('default', 'spec', 'off'),
    help: 'default averages the two limits of 1 request/second over a minute; spec is exact to the second; off is for load tests.',
  },
  logLevel: {
    env: 'LOG_LEVEL',
    fallback: 'info',
    read: oneOf('silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'),
    help: 'debug logs each request.',
  },
  logFormat: {
    env: 'LOG_FORMAT',
    fallback: undefined,
    read: oneOf('json', 'pretty'),
    help: 'How the log is written, on standard error: json for machines, pretty for people. Defaults to pretty on a terminal, and to json everywhere else.',
  },
  secretKey: {
    env: 'SECRET_KEY',
    fallback: undefined,
    read: longEnough(16),
    help: 'Encrypts provider credentials at rest. Made and kept under the data folder when absent. "new,old" rotates.',
  },
  role: {
    env: 'ROLE',
    fallback: 'all',
    read: oneOf('all', 'api', 'worker'),
    help: 'What this process does: answer requests, run background jobs, or both.',
  },
  trustProxy: {
    env: 'TRUST_PROXY',
    fallback: false,
    read: proxies,
    help: 'Take the caller’s address from X-Forwarded-For: true, or the addresses of the proxies to believe.',
  },
  metricsToken: {
    env: 'METRICS_TOKEN',
    fallback: undefined,
    read: longEnough(16),
    help: 'Lets a scraper read /metrics with "Authorization: Bearer <token>".',
  },
  requestBodyMb: {
    env: 'REQUEST_BODY_MB',
    fallback: 32,
    read: wholeNumber(16, 65_536),
    help: 'Memory for the bodies of requests under way, in MB per process. Half of it is for bodies of up to 64 KB. One address may hold an eighth; further bodies wait for up to 30 s, and are then refused with 429 or 503 and Retry-After.',
  },
  unsafeDurability: {
    env: 'UNSAFE_DURABILITY',
    fallback: false,
    read: flag,
    help: 'Start although the database may lose acknowledged writes (fsync, full_page_writes or synchronous_commit off).',
  },
  allowUnreadableSecrets: {
    env: 'ALLOW_UNREADABLE_SECRETS',
    fallback: false,
    read: flag,
    help: 'Start although SECRET_KEY cannot open all that the database holds: for those who lost the key. What cannot be opened has to be set again.',
  },
  eventRetentionDays: {
    env: 'EVENT_RETENTION_DAYS',
    fallback: 400,
    read: wholeNumber(1, 3_650),
    help: 'How long custom events are kept; they go by whole months. The same on every server.',
  },
  deliveryRetentionDays: {
    env: 'DELIVERY_RETENTION_DAYS',
    fallback: 400,
    // People can unsubscribe with a mail for 60 days, and it may have been tried for 28 before it was delivered.
    read: wholeNumber(90, 3_650),
    help: 'How long messages and what became of each delivery are kept; deliveries go by whole months. At least 90. The same on every server.',
  },
  maxInFlight: {
    env: 'MAX_IN_FLIGHT',
    fallback: 400,
    read: wholeNumber(4, 10_000),
    help: 'Messages of one app under way to one provider at once, per process; of all apps together five times as many. If the process is killed, at most so many of each are unknown.',
  },
  renderProcesses: {
    env: 'RENDER_PROCESSES',
    fallback: undefined,
    read: wholeNumber(2, 64),
    help: 'Processes that render templates, at most, for the API and again for the workers; each takes some 60 MB. One of them is reserved for direct messages and previews. Defaults to the number of cores, and at least 2. They start when they are needed, and all but one stop after a minute without work.',
  },
  journeyMinWaitSeconds: {
    env: 'JOURNEY_MIN_WAIT_SECONDS',
    fallback: 60,
    read: wholeNumber(1, 60),
    help: 'The shortest wait that a journey may have. The interface says 60; less is for trying journeys out.',
  },
  drainSeconds: {
    env: 'DRAIN_SECONDS',
    fallback: undefined,
    read: wholeNumber(0, 300),
    help: 'How long a server that is told to stop still takes requests while /ready says 503, so that a load balancer can notice. Defaults to 5 with DATABASE_URL, and to 0 with the embedded PostgreSQL.',
  },
  databaseConnections: {
    env: 'DATABASE_CONNECTIONS',
    fallback: undefined,
    read: wholeNumber(12, 1_000),
    help: 'Connections to the database that this process opens at most. Defaults to 15, and to 30 with the embedded PostgreSQL, which no other server uses.',
  },
  countingConnections: {
    env: 'COUNTING_CONNECTIONS',
    fallback: undefined,
    read: wholeNumber(2, 50),
    help: 'How many of them are for requests that count audiences. One app has at most all but one of these. Defaults to a share of DATABASE_CONNECTIONS.',
  },
  audienceConnections: {
    env: 'AUDIENCE_CONNECTIONS',
    fallback: undefined,
    read: wholeNumber(2, 50),
    help: 'How many of them are for workers that find the audiences of messages, journeys and exports. One app has at most all but one of these. Defaults to a share of DATABASE_CONNECTIONS.',
  },
  mailListen: {
    env: 'MAIL_LISTEN',
    fallback: undefined,
    read: hostAndPort,
    help: 'Where mail that comes back is taken in (bounces, complaints, unsubscribing by mail), as 0.0.0.0:25; nowhere unless given.',
  },
  providerCa: {
    env: 'PROVIDER_CA',
    fallback: undefined,
    read: readCertificates,
    help: 'Certificates to believe beside the usual ones when providers are called: a file in PEM, or its content.',
  },
  providerConnect: {
    env: 'PROVIDER_CONNECT',
    fallback: undefined,
    read: readConnect,
    help: 'Where to connect instead: https://api.push.apple.com=127.0.0.1:7001, separated by commas; https://* is any other.',
  },
  outboundAllow: {
    env: 'OUTBOUND_ALLOW',
    fallback: undefined,
    read: readNetworks,
    help: 'Networks that webhooks, attachments, providers of texts and relays of apps may be in although they are not public: 10.1.0.0/16,127.0.0.1.',
  },
  outboundAllowHttp: {
    env: 'OUTBOUND_ALLOW_HTTP',
    fallback: false,
    read: flag,
    help: 'Plain http to the networks of OUTBOUND_ALLOW; to all others it is always https.',
  },
  twilioUrl: {
    env: 'TWILIO_URL',
    fallback: 'https://api.twilio.com',
    read: url('https:', 'http:'),
    help: 'Where Twilio is, or a service that speaks as it does. The same for all apps.',
  },
  vapidSubject: {
    env: 'VAPID_SUBJECT',
    fallback: undefined,
    read: readVapidSubject,
    help: 'Whom push services of browsers may write to about this server: mailto:you@example.com. PUBLIC_URL unless given, if it is https.',
  },
  smtpUrl: {
    env: 'SMTP_URL',
    fallback: undefined,
    read: readSmtpUrl,
    help: 'How mail goes out for apps that say nothing of their own: smtp://user:password@host:587, smtps://…, or direct: to the servers of the recipients. Without it mail is caught and shown, not sent.',
  },
  mailHelo: {
    env: 'MAIL_HELO',
    fallback: undefined,
    read: readHelo,
    help: 'Name that this server greets mail servers with, and that return paths of apps lead to: mail.example.com. The host of PUBLIC_URL unless given.',
  },
  resolver: {
    env: 'RESOLVER',
    fallback: undefined,
    read: readResolver,
    help: 'DNS server to ask for the records of mail, as 127.0.0.1:5353. Those of the system unless given.',
  },
  inboxProviders: {
    env: 'INBOX_PROVIDERS',
    fallback: undefined,
    read: readInboxProviders,
    help: 'A file of JSON with names of inbox providers that go before ours: {"providers": {"gmail": {"domains": [], "domain_suffixes": [], "mx_suffixes": []}}}.',
  },
  emailAttachmentsMb: {
    env: 'EMAIL_ATTACHMENTS_MB',
    fallback: 0,
    read: wholeNumber(0, 20),
    help: 'How many MB the files that a mail has attached may have together; the server fetches them from where the message says. 0: mails with attachments are refused. The same on every server.',
  },
  defaultPlan: {
    env: 'DEFAULT_PLAN',
    fallback: 'paid',
    read: oneOf('paid', 'free'),
    help: 'Plan of new apps, which sets their rate limits: free is for those who sell the service on. "carillon app set --plan" changes that of one app.',
  },
  sink: {
    env: 'SINK',
    fallback: false,
    read: flag,
    help: 'For trying things out: stand-ins of all providers run beside the server, apps that lack credentials get theirs at the start and when they are made, and nothing leaves the machine.',
  },
  organizationId: {
    env: 'CARILLON_ORG_ID',
    fallback: undefined,
    read: uuid,
    help: 'Id of the first organization, instead of a generated one.',
  },
  organizationKey: {
    env: 'CARILLON_ORG_KEY',
    fallback: undefined,
    read: longEnough(32),
    help: 'Key of the first organization, instead of a generated one.',
  },
}

export const flagName = (env: string) => `--${env.toLowerCase().replaceAll('_', '-')}`

/** Settings from the environment and from flags; what is left of the arguments comes back too. */
export function readConfig(
  env: Record<string, string | undefined>,
  args: readonly string[] = [],
): { config: Config; rest: string[] } {
  const { flags, rest } = splitFlags(args)
  const entries = Object.entries(settings).map(([name, setting]) => {
    const fromFlag = flags.get(setting.env)
    const text = fromFlag ?? env[setting.env]
    // An empty variable is an unset one: that is how compose files and shells leave a setting out.
    if (text === undefined || text === '') return [name, setting.fallback]
    try {
      return [name, (setting as Setting<unknown>).read(text)]
    } catch (error) {
      throw new ConfigError(
        `${fromFlag === undefined ? setting.env : flagName(setting.env)} ${(error as Error).message}`,
      )
    }
  })
  const given = Object.fromEntries(entries) as Settings
  return { config: { ...given, providers: toProviders(given) }, rest }
}

function splitFlags(args: readonly string[]) {
  const byFlag = new Map(Object.values(settings).map((setting) => [flagName(setting.env), setting]))
  const flags = new Map<string, string>()
  const rest: string[] = []
  for (let i = 0; i < args.length; i++) {
    const [name = '', inline] = (args[i] as string).split(/=(.*)/s)
    const setting = byFlag.get(name)
    if (setting === undefined) rest.push(args[i] as string)
    // `--sink` alone switches it on; a word that is no answer to yes or no belongs to whatever comes after.
    else if (setting.read === flag && !isYesOrNo(inline ?? args[i + 1])) flags.set(setting.env, inline ?? 'true')
    else {
      const value = inline ?? args[++i]
      if (value === undefined) throw new ConfigError(`${name} needs a value`)
      flags.set(setting.env, value)
    }
  }
  return { flags, rest }
}
