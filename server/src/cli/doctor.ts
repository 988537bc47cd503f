// Checks for problems before they cause failures.

import { stat, statfs } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type pg from 'pg'
import { areOpenable } from '../apps/credentials/sealed.ts'
import { findAllApps } from '../apps/store.ts'
import { isOpenToUnverifiedSdks } from '../apps/warnings.ts'
import { areKeysOpenable } from '../email/domains/dkim-keys.ts'
import { findKeysAcrossApps } from '../email/domains/store.ts'
import { findPausedAcrossApps } from '../email/pause-store.ts'
import { type SystemClock, systemClock } from '../lib/clock.ts'
import { secretBox } from '../lib/secrets.ts'
import { findNodes } from '../limits/store.ts'
import { explain } from '../process/explain-failure.ts'
import { OLDEST_VERSION } from '../process/open-database.ts'
import { findSecretKey, secretKeyFile } from '../process/secret-key.ts'
import { countParked } from '../queue/parked.ts'
import { findDisabledHold } from '../sending/read.ts'
import { findHeldAppsAcrossApps, findServerSending, type HeldApp } from '../sending/store.ts'
import type { Config } from '../settings/config.ts'
import { findUnsafeSettings, readVersion } from '../storage/check-durability.ts'
import type { Db } from '../storage/db.ts'
import { hasDatabase } from '../storage/embedded/attach.ts'
import { reasonOf } from '../storage/embedded/error.ts'
import { MigrationError } from '../storage/migrate.ts'
import { sql } from '../storage/sql.ts'
import { findAppsWithAddresses } from '../users/subscriptions/address-store.ts'
import type { CliCommand, CommandOutcome } from './command.ts'
import { lookAtSchema, reachDatabase, withPool } from './connect.ts'
import { count } from './print.ts'

export type DoctorFinding = { check: string; state: 'ok' | 'warning' | 'problem'; says: string; advice?: string }

const ok = (check: string, says: string): DoctorFinding => ({ check, state: 'ok', says })
const warning = (check: string, says: string, advice: string): DoctorFinding => ({
  check,
  state: 'warning',
  says,
  advice,
})
const problem = (check: string, says: string, advice: string): DoctorFinding => ({
  check,
  state: 'problem',
  says,
  advice,
})

export const doctorCommands: CliCommand[] = [
  {
    name: 'doctor',
    summary: 'Check settings, data folder, database and stuck work. Exits with 1 if there is a problem.',
    usage: '',
    examples: ['carillon doctor', 'carillon doctor --database-url postgres://carillon@db.example.com/carillon --json'],
    run: async ({ config }) => report(await examine(config)),
  },
]

/** When settings cannot be read, nothing else can be checked. */
export const brokenSettings = (error: unknown) =>
  report([problem('settings', explain(error), 'Correct it; docs/settings.md lists every setting.')])

function report(findings: DoctorFinding[]): CommandOutcome {
  const width = Math.max(...findings.map(({ check }) => check.length))
  return {
    json: findings,
    text: findings
      .map(({ check, state, says, advice }) => {
        const line = `${state.padEnd(7)}  ${check.padEnd(width)}  ${says}`
        return advice === undefined ? line : `${line}\n${' '.repeat(width + 11)}${advice}`
      })
      .join('\n'),
    failed: findings.some(({ state }) => state === 'problem'),
  }
}

async function examine(config: Config): Promise<DoctorFinding[]> {
  return [
    ...checkSettings(config),
    checkPublicUrl(config),
    checkMail(config),
    await checkDataFolder(config),
    ...(await checkSecretFiles(config)),
    ...(await checkDisk(config)),
    ...(await checkDatabase(config)),
  ]
}

function checkPublicUrl({ publicUrl }: Config): DoctorFinding {
  const check = 'public address'
  return publicUrl === undefined
    ? warning(
        check,
        'PUBLIC_URL is not set: links in messages and addresses of exports lead to this machine alone.',
        'Give PUBLIC_URL, the address under which the world reaches this server.',
      )
    : ok(check, publicUrl)
}

function checkSettings({ limits, unsafeDurability }: Config): DoctorFinding[] {
  const found: DoctorFinding[] = []
  if (limits === 'off')
    found.push(
      warning('settings', 'LIMITS is off: nothing holds back a caller.', 'Leave LIMITS out, unless for a load test.'),
    )
  if (unsafeDurability)
    found.push(
      warning(
        'settings',
        'UNSAFE_DURABILITY is on: a crash may lose acknowledged writes.',
        'Leave it out in production.',
      ),
    )
  return found.length > 0 ? found : [ok('settings', 'can be read')]
}

function checkMail({ providers: { email: mail }, publicUrl, mailListen }: Config): DoctorFinding {
  const check = 'mail'
  const { route: way } = mail
  if (way === undefined)
    return ok(check, 'is caught and shown, not sent, for apps without a relay of their own; SMTP_URL sends it')
  const says =
    way === 'direct' ? 'goes directly to the servers of the recipients' : `goes through ${way.host}:${way.port}`
  if (way !== 'direct' && way.isCatcher) return ok(check, `${says}, which sends nothing on`)
  if (publicUrl === undefined)
    return warning(check, `${says}, and links in it lead nowhere`, 'Give PUBLIC_URL, the address of this server.')
  // A relay may receive bounces itself and report them, so only direct delivery needs MAIL_LISTEN.
  return way === 'direct' && mailListen === undefined
    ? warning(check, `${says}, and nobody hears what comes back`, 'Set MAIL_LISTEN, for example to 0.0.0.0:25.')
    : ok(check, says)
}

async function checkDataFolder({ dataDir }: Config): Promise<DoctorFinding> {
  const path = resolve(dataDir)
  const check = 'data folder'
  try {
    const found = await stat(path)
    if (!found.isDirectory()) return problem(check, `${path} is a file`, 'Choose another with DATA_DIR.')
    // Group execute permission is allowed: where PostgreSQL runs as nobody, its group must pass through. Neither the
    // group nor others may list the folder.
    if ((found.mode & 0o067) !== 0)
      return warning(check, `${path} is open to other users of this machine`, `Close it: chmod 700 ${path}`)
    return ok(check, `${path} is yours alone`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ok(check, `${path} will be made by the first start`)
    return problem(check, `${path} cannot be used: ${reasonOf(error)}`, 'Run as the user that the server runs as.')
  }
}

async function checkSecretFiles({ dataDir, secretKey }: Config): Promise<DoctorFinding[]> {
  const check = 'secret key'
  const kept = secretKeyFile(dataDir)
  const mode = await modeOf(kept)
  const key =
    secretKey !== undefined
      ? ok(check, 'given by SECRET_KEY')
      : mode === undefined
        ? ok(check, `${kept} will be made by the next start`)
        : ok(check, `kept in ${kept}; put it into your backups`)
  const open: DoctorFinding[] = []
  for (const file of [kept, join(dataDir, 'first-keys.json')])
    if ((((await modeOf(file)) ?? 0) & 0o077) !== 0)
      open.push(problem(check, `${file} can be read by other users of this machine`, `Close it: chmod 600 ${file}`))
  return open.length > 0 ? open : [key]
}

const modeOf = (file: string) =>
  stat(file).then(
    ({ mode }) => mode,
    () => undefined,
  )

const MB = 1024 * 1024

async function checkDisk({ dataDir, databaseUrl }: Config): Promise<DoctorFinding[]> {
  const check = 'disk space'
  const found = await statfs(resolve(dataDir)).catch(() => undefined)
  if (!found) return []
  const freeMb = Math.floor((found.bavail * found.bsize) / MB)
  const says = `${freeMb} MB are free for the data folder`
  // With an external database the folder contains only two small files, and the disk of that database cannot be checked
  // from here.
  const needed = databaseUrl === undefined ? { problem: 256, warning: 2_048 } : { problem: 1, warning: 16 }
  if (freeMb < needed.problem) return [problem(check, says, 'Make room: writes fail when the disk is full.')]
  return [freeMb < needed.warning ? warning(check, says, 'Make room before it is full.') : ok(check, says)]
}

async function checkDatabase(config: Config): Promise<DoctorFinding[]> {
  const check = 'database'
  if (config.databaseUrl === undefined && !(await hasDatabase(config.dataDir)))
    return [ok(check, 'will be made by the first start')]
  try {
    const database = await reachDatabase(config)
    try {
      return await checkReached(config, database.connection)
    } finally {
      await database.close()
    }
  } catch (error) {
    return [problem(check, explain(error), 'Nothing works without it; the other checks of it were left out.')]
  }
}

const STATEMENT_TIMEOUT_MS = 30_000

async function checkReached(config: Config, connection: pg.ClientConfig): Promise<DoctorFinding[]> {
  const clock = systemClock()
  const { isCurrent, finding } = await checkSchema(connection)
  return withPool(connection, clock, STATEMENT_TIMEOUT_MS, async (db) => [
    await checkVersion(db),
    await checkDurability(db, config),
    await checkPageCost(db),
    checkClock(clock),
    finding,
    // Nothing is known about the tables of another version's schema.
    ...(isCurrent
      ? [
          await checkNodes(db, config, clock),
          await checkCredentials(db, config),
          await checkParked(db),
          ...(await checkSending(db, clock)),
          await checkDoors(db),
        ]
      : []),
  ])
}

async function checkSchema(connection: pg.ClientConfig): Promise<{ isCurrent: boolean; finding: DoctorFinding }> {
  const check = 'tables'
  try {
    const { pending } = await lookAtSchema(connection)
    if (pending.length === 0) return { isCurrent: true, finding: ok(check, 'are those of this version') }
    const says = `${count(pending.length, 'migration')} to apply`
    return { isCurrent: false, finding: warning(check, says, 'Run "carillon migrate", or start the server.') }
  } catch (error) {
    if (!(error instanceof MigrationError)) throw error
    const finding = problem(check, error.message, 'Run the version of Carillon that the database was last used with.')
    return { isCurrent: false, finding }
  }
}

async function checkVersion(db: Db): Promise<DoctorFinding> {
  const version = await readVersion(db)
  const says = `answers, PostgreSQL ${version}`
  return version < OLDEST_VERSION
    ? problem('database', says, `Upgrade it to PostgreSQL ${OLDEST_VERSION} or newer.`)
    : ok('database', says)
}

async function checkDurability(db: Db, { unsafeDurability }: Config): Promise<DoctorFinding> {
  const check = 'durability'
  const unsafe = await findUnsafeSettings(db)
  if (unsafe.length === 0) return ok(check, 'acknowledged writes survive a crash')
  const says = `${unsafe.join(' and ')} ${unsafe.length === 1 ? 'is' : 'are'} off: a crash may lose acknowledged writes`
  const advice = `Switch on in postgresql.conf: ${unsafe.map((name) => `${name} = on`).join(', ')}`
  return unsafeDurability ? warning(check, says, advice) : problem(check, says, advice)
}

/** PostgreSQL's default is for spinning disks: with it, the planner prefers reading whole tables to using an index. */
async function checkPageCost(db: Db): Promise<DoctorFinding> {
  const check = 'page cost'
  const [found] = await db.query<{ cost: number }>(
    sql`select current_setting('random_page_cost')::double precision as cost`,
  )
  const cost = found?.cost ?? 0
  const says = `random_page_cost is ${cost}`
  return cost < 4 ? ok(check, says) : warning(check, says, 'On SSDs set random_page_cost = 1.1 in postgresql.conf.')
}

const FAR_MS = 1_000

function checkClock(clock: SystemClock): DoctorFinding {
  const check = 'clock'
  const drift = clock.driftMs()
  if (Math.abs(drift) < FAR_MS) return ok(check, 'agrees with the database’s')
  const says = `is ${(Math.abs(drift) / 1000).toFixed(1)} s ${drift > 0 ? 'ahead of' : 'behind'} the database’s, which counts`
  return warning(check, says, 'Let NTP set the clocks of both machines.')
}

async function checkNodes(db: Db, { secretKey }: Config, clock: SystemClock): Promise<DoctorFinding> {
  const check = 'servers'
  const alive = (await findNodes(db)).filter(
    ({ counts, leaseUntil }) => counts !== 'gone' && leaseUntil > clock.leaseMs(),
  )
  const says = alive.length === 0 ? 'none is answering requests' : `${alive.length} answering requests`
  return alive.length > 1 && secretKey === undefined
    ? warning(
        check,
        `${says}, and SECRET_KEY is not given`,
        'Give all of them the same SECRET_KEY, unless they share this data folder.',
      )
    : ok(check, says)
}

/** With another key than the one that sealed them, nothing can be sent; it is better to learn that here. */
async function checkCredentials(db: Db, config: Config): Promise<DoctorFinding> {
  const check = 'credentials'
  const apps = (await findAllApps(db)).filter(({ credentials }) => Object.keys(credentials).length > 0)
  const domains = await findKeysAcrossApps(db)
  const sealed = new Set([...apps.map(({ id }) => id), ...domains.map(({ appId }) => appId)])
  if (sealed.size === 0) return ok(check, 'none are kept yet')
  const key = await findSecretKey(config)
  const secrets = key === undefined ? undefined : secretBox(key)
  const lost = new Set([
    ...apps.filter((it) => !secrets || !areOpenable(secrets, it.id, it.credentials)).map(({ id }) => id),
    ...domains
      .filter((it) => !secrets || !areKeysOpenable(secrets, it.appId, it.domain, it.dkimKeys))
      .map(({ appId }) => appId),
  ])
  return lost.size === 0
    ? ok(check, `those of ${count(sealed.size, 'app')} open with the secret key`)
    : problem(
        check,
        `those of ${count(lost.size, 'app')} do not open with the secret key`,
        'Give the SECRET_KEY they were written with, as "new,old" beside a new one, or restore the file secret-key.',
      )
}

async function checkParked(db: Db): Promise<DoctorFinding> {
  const check = 'parked jobs'
  const total = (await countParked(db)).reduce((sum, { count }) => sum + count, 0)
  return total === 0
    ? ok(check, 'none')
    : warning(
        check,
        `${count(total, 'job')} failed too often`,
        'See "carillon jobs list", then release or delete them.',
      )
}

async function checkSending(db: Db, clock: SystemClock): Promise<DoctorFinding[]> {
  const check = 'sending'
  const found: DoctorFinding[] = []
  const { restoredAt, pausedAt } = await findServerSending(db)
  if (restoredAt)
    found.push(
      problem(
        check,
        `held since ${restoredAt.toISOString()}: the database was restored or copied`,
        'Run "carillon resume --send", or "--discard" to give up what is due.',
      ),
    )
  if (pausedAt)
    found.push(warning(check, `paused since ${pausedAt.toISOString()}`, 'Run "carillon resume" when it may go on.'))
  const held = await findHeldAppsAcrossApps(db)
  const paused = held.filter((app) => app.pausedAt !== null)
  if (paused.length > 0)
    found.push(warning(check, `paused for ${listed(paused)}`, 'Run "carillon resume --app APP_ID" when it may go on.'))
  const disabled: HeldApp[] = []
  for (const app of held)
    if (app.disabledAt && (await findDisabledHold(db, app.appId, app.disabledAt, clock.now()))) disabled.push(app)
  if (disabled.length > 0)
    found.push(
      warning(
        check,
        `disabled for ${listed(disabled)}: more was sent than the application message limit allows`,
        'See "carillon sending show APP_ID"; "carillon sending enable APP_ID" ends it.',
      ),
    )
  const complainedAbout = await findPausedAcrossApps(db)
  if (complainedAbout.length > 0)
    found.push(
      warning(
        check,
        `email is paused for ${listed(complainedAbout)}: too many people complained`,
        'Look into it, then run "carillon email resume --app APP_ID".',
      ),
    )
  return found.length > 0 ? found : [ok(check, 'goes on for every app')]
}

async function checkDoors(db: Db): Promise<DoctorFinding> {
  const check = 'SDKs'
  const open = (await findAllApps(db)).filter(isOpenToUnverifiedSdks).map(({ id }) => id)
  const exposed = await findAppsWithAddresses(db, open)
  if (exposed.size === 0) return ok(check, 'no app that holds addresses lets them in without proof of identity')
  const apps = listed([...exposed].map((appId) => ({ appId })))
  return warning(
    check,
    `come in without proof of identity to ${apps}, which hold email addresses or phone numbers`,
    'Run "carillon app set APP_ID --require-identity on" with an identity key, or "--keyless off".',
  )
}

const MOST_LISTED = 5

function listed(apps: Pick<HeldApp, 'appId'>[]): string {
  const more = apps.length - MOST_LISTED
  const ids = apps.slice(0, MOST_LISTED).map(({ appId }) => appId)
  return `${ids.join(', ')}${more > 0 ? ` and ${count(more, 'more app')}` : ''}`
}
