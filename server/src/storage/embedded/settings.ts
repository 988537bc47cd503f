import { totalmem } from 'node:os'

const MB = 1024 * 1024

/**
 * A quarter of the memory, as PostgreSQL's manual recommends, with a cap, because the server and the system's page
 * cache share the machine.
 */
function sharedBuffersMb(): number {
  const limit = process.constrainedMemory()
  const memory = limit > 0 ? Math.min(limit, totalmem()) : totalmem()
  return Math.round(Math.min(1024, Math.max(32, memory / 4 / MB)))
}

/**
 * Passed on the command line, so that a file in the data folder can neither allow other connections nor weaken
 * durability.
 */
export function serverArguments(socketDir: string, overrides: Record<string, string> = {}): string[] {
  const settings: Record<string, string> = {
    // Only the owner of the socket's folder can connect, and needs no password.
    listen_addresses: '',
    unix_socket_directories: socketDir,
    unix_socket_permissions: '0700',
    port: '5432',
    max_connections: '100',
    fsync: 'on',
    full_page_writes: 'on',
    synchronous_commit: 'on',
    shared_buffers: `${sharedBuffersMb()}MB`,
    // Checkpoints are triggered by time rather than by volume. The write-ahead log is not compressed: these binaries
    // support only pglz, which costs more CPU than the disk space is worth.
    max_wal_size: '2GB',
    // Statements here are short: compiling them costs more than it saves. Disks are SSDs.
    jit: 'off',
    random_page_cost: '1.1',
    timezone: 'UTC',
    log_timezone: 'UTC',
    logging_collector: 'off',
    log_destination: 'stderr',
    log_checkpoints: 'off',
    // Statements and details would write customers' data into the log; the caller receives the full error anyway.
    log_error_verbosity: 'terse',
    log_min_error_statement: 'panic',
    ...overrides,
  }
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}
