import { type DestinationStream, type Logger, pino } from 'pino'

export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'child' | 'isLevelEnabled'>

// Request bodies, headers and SQL parameters are never logged; this is the second line of defence, for objects logged
// by mistake.
const SECRETS = ['authorization', 'key', 'apiKey', 'token', 'password', 'secret', 'databaseUrl', 'secretKey']

export function createLog(level: string, destination?: DestinationStream): Log {
  const redact = { paths: SECRETS.flatMap((name) => [name, `*.${name}`]), censor: '[hidden]' }
  return pino(
    { level, redact, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    destination ?? pino.destination(2),
  )
}
