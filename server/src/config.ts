// Every setting, in one place: name, default, meaning. Read once, checked, passed on as plain values.
// Each can be given as an environment variable (PORT=8080) or as a flag (--port 8080); the flag wins.

import { isUuidV4 } from './lib/ids.ts'

export type LimitsProfile = 'default' | 'spec' | 'off'
export type Role = 'all' | 'api' | 'worker'

export type Config = {
  port: number
  host: string
  dataDir: string
  databaseUrl: string | undefined
  publicUrl: string | undefined
  limits: LimitsProfile
  logLevel: string
  secretKey: string | undefined
  role: Role
  trustProxy: boolean | string
  metricsToken: string | undefined
  unsafeDurability: boolean
  eventRetentionDays: number
  organizationId: string | undefined
  organizationKey: string | undefined
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

const flag = (text: string) => {
  if (/^(1|true|yes|on)$/i.test(text)) return true
  if (/^(0|false|no|off|)$/i.test(text)) return false
  throw new ConfigError('must be true or false')
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

/** true, false, or a comma-separated list of addresses and networks, as Fastify's trustProxy takes it. */
const proxies = (text: string) => (/^(true|false|1|0|yes|no|on|off)$/i.test(text) ? flag(text) : text)

export const settings: { [Name in keyof Config]: Setting<Config[Name]> } = {
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
    help: 'Address under which the world reaches this server, for links in messages.',
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
  unsafeDurability: {
    env: 'UNSAFE_DURABILITY',
    fallback: false,
    read: flag,
    help: 'Start although the database may lose acknowledged writes (fsync, full_page_writes or synchronous_commit off).',
  },
  eventRetentionDays: {
    env: 'EVENT_RETENTION_DAYS',
    fallback: 400,
    read: wholeNumber(1, 3_650),
    help: 'How long custom events are kept; they go by whole months. The same on every server.',
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
  return { config: Object.fromEntries(entries) as Config, rest }
}

function splitFlags(args: readonly string[]) {
  const byFlag = new Map(Object.values(settings).map((setting) => [flagName(setting.env), setting.env]))
  const flags = new Map<string, string>()
  const rest: string[] = []
  for (let i = 0; i < args.length; i++) {
    const [name = '', inline] = (args[i] as string).split(/=(.*)/s)
    const env = byFlag.get(name)
    if (env === undefined) rest.push(args[i] as string)
    else {
      const value = inline ?? args[++i]
      if (value === undefined) throw new ConfigError(`${name} needs a value`)
      flags.set(env, value)
    }
  }
  return { flags, rest }
}
