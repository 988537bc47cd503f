import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterEach, describe, expect, inject, test } from 'vitest'
import { urlOf } from '../command-line.ts'
import { freshFolder, isReady, isRoot, launch, mountAt, NOBODY, PROJECT, printedKeys, refusal } from './launch.ts'

const others: Server[] = []
afterEach(() => {
  for (const other of others.splice(0)) other.close()
})

/** Some other program on a free port. */
async function listening(server: Server): Promise<number> {
  others.push(server.listen(0, '127.0.0.1'))
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

const talking = (talk: (socket: Socket) => void) =>
  createServer((socket) => {
    socket.on('error', () => {})
    talk(socket)
  })

test('a second server on the same folder, which harms neither', async () => {
  const first = await launch()
  const url = await first.ready()
  const second = await launch({ dataDir: first.dataDir })
  expect(await second.ended).toMatchObject({
    code: 1,
    out: '',
    err: `Carillon cannot start: another Carillon (pid ${first.pid}) is using ${first.dataDir}\n`,
  })
  expect(await isReady(url)).toBe(true)
  await first.stop()
})

test('a busy port, after which the first keys are still to be shown', async () => {
  const port = await listening(createServer())
  const dataDir = join(await freshFolder(), 'data')
  expect(await refusal({ dataDir, env: { PORT: String(port) } })).toBe(
    `port ${port} is in use by another program; stop that one, or choose another with PORT=…`,
  )
  const next = await launch({ dataDir })
  await next.ready()
  expect(printedKeys(next.out()).appKey).not.toBe('')
  await next.stop()
})

test('a secret key that is not the one of the database, unless it is said to be lost', async () => {
  const first = await launch()
  const url = await first.ready()
  const { appId, organizationKey } = printedKeys(first.out())
  const view = await fetch(`${url}/apps/${appId}`, { headers: { authorization: `Key ${organizationKey}` } })
  expect(view.status).toBe(200)
  await first.stop()
  const { dataDir } = first
  expect(await refusal({ dataDir, env: { SECRET_KEY: 'a key of somebody else' } })).toMatch(
    new RegExp(`^SECRET_KEY does not open the vapid of app ${appId}; give the key that it was written with `),
  )
  const file = join(dataDir, 'secret-key')
  await rename(file, `${file}.away`)
  expect(await refusal({ dataDir })).toMatch(`${file} is missing, and the database holds the vapid of app ${appId}; `)
  expect(await readdir(dataDir)).not.toContain('secret-key')
  const lost = await launch({
    dataDir,
    env: { SECRET_KEY: 'a key of somebody else', ALLOW_UNREADABLE_SECRETS: 'true' },
  })
  await lost.ready()
  await lost.stop()
  await rename(`${file}.away`, file)
  const again = await launch({ dataDir })
  await again.ready()
  await again.stop()
})

test('a folder that its user may not use', async ({ skip }) => {
  if (!isRoot) skip('needs root, to become somebody else')
  const folder = await freshFolder()
  const clone = join(folder, 'clone')
  if (!(await mountAt(clone, '--bind', PROJECT))) skip('mounting is forbidden here')
  const command = [process.execPath.replace(PROJECT, `${clone}/`), join(clone, 'server/run.mjs'), 'main']
  const closed = join(folder, 'closed')
  await mkdir(closed, { mode: 0o700 })
  expect(await refusal({ dataDir: closed, command, options: { cwd: clone, ...NOBODY } })).toBe(
    `cannot use the data folder ${closed}: permission denied`,
  )
  await chmod(closed, 0o555)
  expect(await refusal({ dataDir: closed, command, options: { cwd: clone, ...NOBODY } })).toBe(
    `cannot use the data folder ${closed}: permission denied`,
  )
})

test('a full disk, at the first start and at a later one', async ({ skip }) => {
  if (!isRoot || process.platform !== 'linux') skip('needs root on Linux, to mount a small disk')
  const disk = join(await freshFolder(), 'disk')
  const dataDir = join(disk, 'data')
  if (!(await mountAt(disk, '-t', 'tmpfs', '-o', 'size=20m', 'tmpfs'))) skip('mounting is forbidden here')
  expect(await refusal({ dataDir })).toBe(`cannot create the database in ${dataDir}: no space left on the disk`)

  execFileSync('mount', ['-o', 'remount,size=200m', disk])
  const server = await launch({ dataDir })
  await server.ready()
  await server.stop()
  spawnSync('dd', ['if=/dev/zero', `of=${disk}/fill`, 'bs=4k'], { stdio: 'ignore' })
  expect(await refusal({ dataDir })).toBe(`cannot use the data folder ${dataDir}: no space left on the disk`)
  await rm(join(disk, 'fill'))
  const next = await launch({ dataDir })
  await next.ready()
  await next.stop()
})

describe('a DATABASE_URL', () => {
  const refused = (url: string) => refusal({ env: { DATABASE_URL: url } })

  test('where nothing listens', async () => {
    const server = createServer()
    const port = await listening(server)
    server.close()
    expect(await refused(`postgres://u:secret@127.0.0.1:${port}/x`)).toBe(
      `cannot reach the database of DATABASE_URL at 127.0.0.1:${port} (ECONNREFUSED)`,
    )
    expect(await refused('postgres:///x?host=/nowhere')).toBe(
      'there is no PostgreSQL at the socket /nowhere/.s.PGSQL.5432 of DATABASE_URL; check that it is running',
    )
  })

  test('with a wrong password', async () => {
    const asksAndRefuses = talking((socket) => {
      socket.once('data', () => {
        socket.write(Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3]))
        socket.once('data', () => {
          const fields = Buffer.from('SFATAL\0C28P01\0Mpassword authentication failed for user "u"\0\0')
          const length = Buffer.alloc(4)
          length.writeInt32BE(fields.length + 4)
          socket.end(Buffer.concat([Buffer.from('E'), length, fields]))
        })
      })
    })
    const port = await listening(asksAndRefuses)
    const line = await refused(`postgres://u:secret@127.0.0.1:${port}/x`)
    expect(line).toBe('the database refuses the user or password of DATABASE_URL')
  })

  test('without the database', async () => {
    expect(await refused(urlOf({ ...inject('server').admin, database: 'no_such_database' }))).toBe(
      'the database named in DATABASE_URL does not exist; create it first',
    )
  })

  test('of something that is not PostgreSQL', async () => {
    const web = await listening(createHttpServer((_request, response) => response.end('hello')))
    const line = 'what answers at DATABASE_URL ended the connection; check that it is a PostgreSQL that lets us in'
    expect(await refused(`postgres://u:secret@127.0.0.1:${web}/x`)).toBe(line)
    const silent = await listening(talking((socket) => socket.resume()))
    const mail = await listening(talking((socket) => socket.write('220 mail.example ESMTP\r\n')))
    const lines = await Promise.all([silent, mail].map((port) => refused(`postgres://u:secret@127.0.0.1:${port}/x`)))
    for (const text of lines) expect(text).toBe('the database of DATABASE_URL does not answer (timeout expired)')
  })

  test('whose database may lose what it acknowledged, unless that is wanted', async () => {
    expect(await refused(urlOf(inject('server').admin))).toMatch(
      /^the database has fsync and full_page_writes and synchronous_commit off, so a crash could lose acknowledged writes; switch it on, or set UNSAFE_DURABILITY=true/,
    )
  })
})

describe('a wrong setting:', () => {
  test.for([
    [{ PORT: '70000' }, 'PORT must be a port number from 0 to 65535'],
    [{ ROLE: 'boss' }, 'ROLE must be one of all, api, worker'],
    [{ DATABASE_URL: 'mysql://x' }, 'DATABASE_URL must be a URL that begins with postgres:// or postgresql://'],
    [{ HOST: '203.0.113.7' }, 'this machine has no address 203.0.113.7; check HOST'],
  ] as [Record<string, string>, string][])('%o', async ([env, line]) => {
    const dataDir = join(await freshFolder(), 'data')
    expect(await refusal({ dataDir, env })).toBe(line)
    if (env.HOST === undefined) expect(await readdir(join(dataDir, '..'))).toEqual([])
  })

  test('a flag that is none', async () => {
    const command = [process.execPath, join(PROJECT, 'server/run.mjs'), 'main', '--prot', '1']
    expect(await refusal({ command })).toBe('"--prot" is not a setting; see "npm start -- --help"')
  })
})

test('an old Node', async () => {
  const launcher = join(PROJECT, 'server/run.mjs')
  const pretend = 'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.20.2" } })'
  const pretended = [process.execPath, '--import', `data:text/javascript,${encodeURIComponent(pretend)}`]
  const installed = ['/usr/bin/node', '/usr/local/bin/node'].filter(
    (path) => Number(spawnSync(path, ['-p', 'parseInt(process.versions.node)']).stdout?.toString()) < 24,
  )
  for (const node of [pretended, ...installed.map((path) => [path])])
    expect(await refusal({ command: [...node, launcher, 'main'] })).toMatch(
      /^Carillon needs Node 24 or newer; this is v\d+/,
    )
})

test('a Linux without glibc is told so, in two lines, before anything is tried', async () => {
  const folder = await freshFolder()
  const look = () => spawnSync('sh', ['server/check-platform.sh', folder], { cwd: PROJECT, encoding: 'utf8' })
  expect(look()).toMatchObject({ status: 0, stderr: '' })
  await mkdir(join(folder, 'lib'))
  await writeFile(join(folder, 'lib/ld-musl-x86_64.so.1'), '')
  expect(look()).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/^Carillon does not run on Alpine.*\n.*\n$/),
  })
  // Whoever has put glibc beside it may try.
  await mkdir(join(folder, 'lib64'))
  await writeFile(join(folder, 'lib64/ld-linux-x86-64.so.2'), '')
  expect(look()).toMatchObject({ status: 0 })
  const { scripts } = JSON.parse(await readFile(join(PROJECT, 'package.json'), 'utf8'))
  for (const name of ['start', 'carillon'])
    expect(scripts[name]).toMatch(/^sh server\/check-platform\.sh && exec node /)
})
