// Explains errors of the operating system and the database in one line that says what to do.

import { AppError } from '../lib/errors.ts'
import { ConfigError } from '../settings/config.ts'
import { EmbeddedError } from '../storage/embedded.ts'
import { MigrationError } from '../storage/migrate.ts'

type SystemError = Error & {
  code?: string
  syscall?: string
  address?: string
  port?: number
  path?: string
  hostname?: string
}

export function explain(error: unknown): string {
  if (error instanceof ConfigError || error instanceof EmbeddedError || error instanceof MigrationError)
    return error.message
  // Connecting to a name with several addresses fails once per address; the first error is representative.
  if (error instanceof AggregateError && error.errors.length > 0) return explain(error.errors[0])
  const { code, syscall, address, port, path, hostname, message } = error as SystemError
  const where = address ?? hostname ?? path ?? ''
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} is in use by another program; stop that one, or choose another with PORT=…`
    case 'EACCES':
      return port === undefined
        ? `no permission for ${where || message}`
        : `no permission to listen on port ${port}; choose one above 1023 with PORT=…`
    case 'EADDRNOTAVAIL':
      return `this machine has no address ${where}; check HOST`
    case 'ECONNREFUSED':
    case 'ECONNRESET':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
    case 'ETIMEDOUT':
    case 'EHOSTUNREACH':
      return `cannot reach the database of DATABASE_URL at ${where}${port === undefined ? '' : `:${port}`} (${code})`
    case 'ENOENT':
      return syscall === 'connect'
        ? `there is no PostgreSQL at the socket ${where} of DATABASE_URL; check that it is running`
        : `there is no file ${where}`
    case 'ENOSPC':
      return 'the disk is full'
    case '28P01':
    case '28000':
      return 'the database refuses the user or password of DATABASE_URL'
    case '3D000':
      return 'the database named in DATABASE_URL does not exist; create it first'
    case '42501':
      return `the user of DATABASE_URL may not do that: ${message}`
    case '53100':
      return 'the disk of the database is full'
  }
  if (error instanceof AppError && error.kind === 'unavailable')
    return 'the database does not answer; check that it is running and that its disk has room'
  if (/terminated/i.test(message))
    return 'what answers at DATABASE_URL ended the connection; check that it is a PostgreSQL that lets us in'
  if (/timeout/i.test(message)) return `the database of DATABASE_URL does not answer (${message})`
  return (message || String(error)).replace(/\s*\n\s*/g, ' ')
}
