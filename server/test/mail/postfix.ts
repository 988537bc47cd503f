// A real Postfix as the rest of the world: a private instance with its own configuration, spool, log and port. Mail for mailboxes at
// `ok.test` ends in files; mail for other domains goes on to hosts of the test's own, and what those refuse comes back as a report.

import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { certificateFor, type ServerCertificate } from '../../src/sink/certificate.ts'

const POSTFIX = '/usr/sbin/postfix'

/** Why there can be none here; undefined where there can. */
const noPostfix = !existsSync(POSTFIX)
  ? 'needs Postfix (apt-get install --no-install-recommends postfix)'
  : process.getuid?.() !== 0
    ? 'needs root, to start Postfix'
    : undefined

/** Where there can be none a test is left out, but never in CI. */
export function needPostfix(skip: (why: string) => void): void {
  if (noPostfix === undefined) return
  if (process.env.CI !== undefined) throw new Error(noPostfix)
  skip(noPostfix)
}

export type PostfixOptions = {
  port: number
  /** Whose mail goes where, `domain` to a port of this machine. */
  transports: Readonly<Record<string, number>>
  /** Who has one at ok.test; mail for others is refused. */
  mailboxes?: readonly string[]
  /** What it shows, where somebody has to know it before. */
  certificate?: ServerCertificate
}

export type Postfix = {
  port: number
  /** Of the certificate that it shows, in PEM. */
  ca: string
  /** Mail that has arrived for somebody at ok.test, each with the line ends that it came with. */
  mailOf(name: string): Promise<Buffer[]>
  log(): Promise<string>
  /** It is gone, with all of its processes, when this resolves. */
  stop(): Promise<void>
}

export const HOST = 'mx.ok.test'

/** Nobody listens there now. */
export const freePort = () =>
  new Promise<number>((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })

export async function startPostfix(options: PostfixOptions): Promise<Postfix> {
  const { port, mailboxes = [], certificate = certificateFor(HOST) } = options
  const folder = await mkdtemp(join(tmpdir(), 'carillon-postfix-'))
  await chmod(folder, 0o755)
  const mail = join(folder, 'mail')
  for (const name of ['spool', 'data', 'mail']) await mkdir(join(folder, name))
  for (const name of ['data', 'mail']) run('chown', ['postfix', join(folder, name)])
  const write = (name: string, text: string) => writeFile(join(folder, name), text, { mode: 0o644 })
  await write('key.pem', certificate.key)
  await write('cert.pem', certificate.cert)
  await write('mailboxes', mailboxes.map((name) => `${name}@ok.test ${name}/\n`).join(''))
  await write('main.cf', mainOf(folder, options.transports))
  await write('master.cf', masterOf(port))
  const stop = async () => {
    spawnSync(POSTFIX, ['-c', folder, 'abort'])
    while ((await processesIn(folder)).length > 0) await pause(20)
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  try {
    run(POSTFIX, ['-c', folder, 'start'])
  } catch (error) {
    await stop()
    throw error
  }
  return {
    port,
    ca: certificate.cert,
    async mailOf(name) {
      const inbox = join(mail, name, 'new')
      const names = await readdir(inbox).catch(() => [])
      const texts = await Promise.all(names.sort().map((file) => readFile(join(inbox, file), 'latin1')))
      // In files it ends lines as files do.
      return texts.map((text) => Buffer.from(text.replaceAll('\n', '\r\n'), 'latin1'))
    },
    log: () => readFile(join(folder, 'log'), 'utf8').catch(() => ''),
    stop,
  }
}

/** All of them work in the spool. */
async function processesIn(folder: string): Promise<string[]> {
  const ids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const places = await Promise.all(ids.map((id) => readlink(`/proc/${id}/cwd`).catch(() => '')))
  return ids.filter((_, n) => places[n]?.startsWith(folder))
}

function run(command: string, args: string[]) {
  const { status, stderr, stdout } = spawnSync(command, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr}${stdout}`)
}

const idOf = (flag: '-u' | '-g') => spawnSync('id', [flag, 'postfix'], { encoding: 'utf8' }).stdout.trim()

const mainOf = (folder: string, transports: PostfixOptions['transports']) => `
compatibility_level = 3.6
queue_directory = ${folder}/spool
data_directory = ${folder}/data
maillog_file = ${folder}/log
maillog_file_prefixes = ${folder}
myhostname = ${HOST}
mydestination =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
alias_maps =
local_recipient_maps =
relay_domains = ${Object.keys(transports).join(', ')}
transport_maps = inline:{ ${Object.entries(transports)
  .map(([domain, port]) => `{ ${domain} = smtp:[127.0.0.1]:${port} }`)
  .join(', ')} }
virtual_mailbox_domains = ok.test
virtual_mailbox_base = ${folder}/mail
virtual_mailbox_maps = texthash:${folder}/mailboxes
virtual_minimum_uid = 1
virtual_uid_maps = static:${idOf('-u')}
virtual_gid_maps = static:${idOf('-g')}
smtpd_tls_cert_file = ${folder}/cert.pem
smtpd_tls_key_file = ${folder}/key.pem
smtpd_tls_security_level = encrypt
smtpd_tls_received_header = yes
smtpd_relay_restrictions = permit_mynetworks, reject
smtpd_client_connection_count_limit = 0
smtpd_client_connection_rate_limit = 0
smtp_tls_security_level = may
minimal_backoff_time = 1s
queue_run_delay = 1s
maximal_queue_lifetime = 0
notify_classes =
`

const SERVICES = `
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
proxywrite unix - - n - 1 proxymap
smtp unix - - n - - smtp
relay unix - - n - - smtp
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
virtual unix - n n - - virtual
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
`

const masterOf = (port: number) => `127.0.0.1:${port} inet n - n - - smtpd\n${SERVICES.trimStart()}`
