// Composition: what the server is made of, and in which order it starts and stops. Read this first.

import { setTimeout as pause } from 'node:timers/promises'
import type { ConfigureNew } from './apps/create.ts'
import { readPushCredentials } from './apps/credentials/credentials.ts'
import { createKeyLookup } from './apps/keys/lookup.ts'
import { createKeyUsage } from './apps/keys/usage.ts'
import { KEYS_CHANNEL } from './apps/store.ts'
import type { Outcome } from './channels/channel.ts'
import { createDial } from './channels/dial.ts'
import { createResolver } from './channels/dns.ts'
import { createFileFetcher } from './channels/email/fetch-attachments.ts'
import { openOutbound } from './channels/outbound.ts'
import { isPublicAddress } from './channels/public-address.ts'
import { openWebhooks, type WebhookItem } from './channels/webhook/webhook.ts'
import { createMailChannels } from './composition/email-channels.ts'
import { createSendMail } from './composition/email-notices.ts'
import { createEmailPort } from './composition/email-port.ts'
import { mailParts, openMailListener } from './composition/inbound-email.ts'
import { allHandlers, allSchedules } from './composition/jobs.ts'
import { openPools } from './composition/pools.ts'
import { readTwilio } from './composition/read-twilio-callback.ts'
import { allRoutes } from './composition/routes.ts'
import { createSenders } from './composition/senders.ts'
import { createTextChannels } from './composition/sms-channels.ts'
import { createEmailContext } from './email/context.ts'
import { createEventsContext } from './events/context.ts'
import { createExportsContext } from './exports/context.ts'
import { createFeedbackContext } from './feedback/context.ts'
import { createMetrics } from './http/metrics.ts'
import { createHttpServer } from './http/server.ts'
import { createInAppContext } from './in-app/context.ts'
import { createJourneysContext } from './journeys/context.ts'
import type { ReferenceKind } from './journeys/document/reading.ts'
import { createDryRunContext, endDryRuns } from './journeys/dry-run/simulate.ts'
import { createRunsContext } from './journeys/runs/context.ts'
import { createNoteActions, createReadRunData } from './journeys/runs/ports.ts'
import { isUsedByLiveJourney } from './journeys/store.ts'
import type { Clock, SystemClock } from './lib/clock.ts'
import { type AppId, newId } from './lib/ids.ts'
import type { Log } from './lib/log.ts'
import { addressList } from './lib/networks.ts'
import { reachableAddress } from './lib/own-address.ts'
import { secretBox } from './lib/secrets.ts'
import { createLimiter } from './limits/limiter.ts'
import { createActivitiesContext } from './messages/activities/context.ts'
import { createMessagesContext } from './messages/context.ts'
import { createEngine } from './messages/engine/engine.ts'
import { resumeMisconfigured } from './messages/release/resume.ts'
import { createOutcomesContext } from './outcomes/context.ts'
import { createWorker } from './queue/work.ts'
import { createReportsContext } from './reports/context.ts'
import { createSegmentsContext } from './segments/context.ts'
import { createScanAudience } from './segments/scan.ts'
import { createSendingContext } from './sending/context.ts'
import type { Config } from './settings/config.ts'
import { shareConnections } from './settings/share-connections.ts'
import type { Db, PoolOptions } from './storage/db.ts'
import { guardWrites } from './storage/guard-writes.ts'
import { createListener } from './storage/listen.ts'
import { createMerger } from './storage/merge.ts'
import { keepStatisticsFresh } from './storage/refresh-statistics.ts'
import { sql } from './storage/sql.ts'
import { createTemplatesContext } from './templates/context.ts'
import { createRenderer } from './templates/render/renderer.ts'
import { createUsersContext } from './users/context.ts'
import { sumPlayerCounts } from './users/store.ts'
import { findAppsWithAddresses } from './users/subscriptions/address-store.ts'

export type AppOptions = {
  config: Pick<
    Config,
    | 'port'
    | 'host'
    | 'limits'
    | 'role'
    | 'publicUrl'
    | 'trustProxy'
    | 'metricsToken'
    | 'requestBodyMb'
    | 'eventRetentionDays'
    | 'deliveryRetentionDays'
    | 'maxInFlight'
    | 'renderProcesses'
    | 'journeyMinWaitSeconds'
    | 'databaseUrl'
    | 'drainSeconds'
    | 'databaseConnections'
    | 'countingConnections'
    | 'audienceConnections'
    | 'providers'
    | 'inboxProviders'
    | 'mailListen'
    | 'emailAttachmentsMb'
    | 'defaultPlan'
  >
  connection: PoolOptions['connection']
  /** What the credentials of providers are sealed with; the same on every server of a database. */
  secretKey: string
  clock: Clock & Partial<SystemClock>
  log: Log
  /** An id that no other process can have, so that a server killed and started again need not wait for its own old lease. */
  nodeId?: string | undefined
  configureNew?: ConfigureNew | undefined
  /** Keys for sending domains that are kept ready; none by default. */
  spareRsaKeys?: number | undefined
  /** False while the disk is nearly full: reads and limits go on, everything else that would write is refused. */
  mayWrite?: (() => boolean) | undefined
}

export type RunningApp = {
  /** Where it listens; undefined for a worker. */
  address: string | undefined
  /** Where it takes in mail; undefined where it does not. */
  mailPort: number | undefined
  /** Stop accepting, finish what is under way, give back what is leased. */
  close(): Promise<void>
}

/** Statements of merged requests in flight at once: half of the pool, so that everything else finds a connection. */
const mergeSlots = (connections: number) => Math.max(1, Math.floor(connections / 2))
/** Where another server could take the requests, there is somebody who hands them out and has to notice. */
const defaultDrainSeconds = ({ databaseUrl }: Pick<Config, 'databaseUrl'>) => (databaseUrl === undefined ? 0 : 5)
/** The operator's own relay may be in any network. */
const EVERYWHERE = ['0.0.0.0/0', '::/0']
const MEGABYTE = 1024 * 1024

export async function startApp(options: AppOptions): Promise<RunningApp> {
  const { config, connection, secretKey, clock, log, nodeId, configureNew, mayWrite = () => true } = options
  const anchored = isAnchored(clock) ? { clock } : {}
  const shares = shareConnections(config)
  const pools = openPools({ connection, shares, log, ...anchored })
  const { db, workerDb } = pools
  const secrets = secretBox(secretKey)
  const listener = createListener(connection, log)
  const metrics = createMetrics()
  const merger = createMerger({ slots: mergeSlots(shares.requests) })
  const outbound = openOutbound(config.providers.outbound)
  const webhooks = openWebhooks({ outbound, clock })
  const sendWebhook = async (webhook: WebhookItem) => (await webhooks.send([webhook]))[0] as Outcome
  const allowed = addressList(config.providers.outbound.allow ?? [])
  const resolver = createResolver(config.providers.mail.resolver)
  const forEmail = {
    clock,
    newId,
    secrets,
    resolver,
    mail: config.providers.mail,
    publicUrl: config.publicUrl,
    port: config.port,
    mayReach: (address: string) => isPublicAddress(address) || allowed.includes(address),
  }
  const noteActions = createNoteActions({ clock, newId })
  const statistics = keepStatisticsFresh(workerDb, () => merger.stats().requests, log)
  const closers: (() => Promise<unknown> | undefined)[] = [
    async () => metrics.close(),
    async () => statistics.stop(),
    () => webhooks.close(),
    () => outbound.close(),
    () => listener.close(),
    () => pools.close(),
  ]
  let startDraining = () => {}
  const close = async () => {
    // First of all, so that nobody is sent here any more while background work ends.
    startDraining()
    for (const closer of closers.splice(0)) await closer()
  }

  try {
    const served = config.role === 'worker' ? undefined : await serve()
    if (config.role !== 'api') work()
    return { address: served?.address, mailPort: served?.mailPort, close }
  } catch (error) {
    await close()
    throw error
  }

  async function serve() {
    const limits = createLimiter({
      db: pools.limitsDb,
      clock,
      profile: config.limits,
      log,
      listener,
      ...(nodeId !== undefined && { nodeId }),
    })
    metrics.gauge('carillon_database_connections', 'Connections to the database.', pools.stats)
    metrics.gauge('carillon_merged_requests', 'Requests merged into statements so far.', () => merger.stats())
    const renderer = createRenderer({ log, clock, processes: config.renderProcesses })
    metrics.gauge('carillon_rendering', 'Rendering processes, calls that wait for one, processes ended.', () =>
      renderer.stats(),
    )
    const parts = { db: guardWrites(db, mayWrite), clock, merger, newId }
    const users = createUsersContext(parts)
    const events = createEventsContext({ ...parts, reader: users.reader, retentionDays: config.eventRetentionDays })
    const segments = createSegmentsContext({
      ...parts,
      reader: users.reader,
      counting: pools.counting,
      isUsed: isUsedAs('segment'),
    })
    const mayAttach = config.emailAttachmentsMb > 0
    const templates = createTemplatesContext({
      ...parts,
      renderer,
      users: users.reader,
      isUsed: isUsedAs('template'),
      mayAttach,
    })
    const inApp = createInAppContext({ ...parts, renderer, users: users.reader, isUsed: isUsedAs('iam') })
    const outcomes = createOutcomesContext(parts)
    const reports = createReportsContext({ ...parts, segments, reader: users.reader })
    let baseUrl = config.publicUrl?.replace(/\/+$/, '')
    const exports = createExportsContext({ ...parts, segments, baseUrl: () => baseUrl ?? '' })
    const usage = createKeyUsage({ db: parts.db, log })
    const countPlayers = (appIds: readonly AppId[]) => sumPlayerCounts(db, appIds)
    const { publicUrl } = config
    const apps = {
      db: parts.db,
      clock,
      secrets,
      configureNew,
      defaultPlan: config.defaultPlan,
      usage,
      countPlayers,
      findAppsWithAddresses: (appIds: readonly AppId[]) => findAppsWithAddresses(db, appIds),
      publicUrl,
    }
    const sending = createSendingContext({ ...parts, secrets })
    const email = createEmailContext({ ...forEmail, db: parts.db, spareRsaKeys: options.spareRsaKeys })
    const messages = createMessagesContext({ ...parts, users, segments, renderer, mayAttach })
    const feedback = createFeedbackContext({
      ...parts,
      secrets,
      change: users.change,
      readTwilio,
      publicUrl,
      sendWebhook,
      noteActions,
      readRunData: createReadRunData(db),
      mail: mailParts({ secretKey, outbound, renderer }),
    })
    const { journeyMinWaitSeconds: minWaitSeconds } = config
    const journeys = createJourneysContext({ ...parts, renderer, secrets, sendWebhook, minWaitSeconds })
    const dryRuns = createDryRunContext({ db: parts.db, connection })
    const { note } = feedback
    const activities = createActivitiesContext({ ...parts, reader: users.reader, messages, note })
    const http = createHttpServer({
      routes: allRoutes({
        apps,
        users,
        events,
        segments,
        templates,
        sending,
        email,
        outcomes,
        messages,
        activities,
        inApp,
        feedback,
        reports,
        exports,
        journeys,
        dryRuns,
        sdk: apps,
      }),
      keys: createKeyLookup({ db, clock, listener, noteUse: usage.note }),
      limits,
      clock,
      log,
      metrics,
      isReady: () =>
        db.query(sql`select 1`).then(
          () => true,
          () => false,
        ),
      trustProxy: config.trustProxy,
      metricsToken: config.metricsToken,
      publicUrl,
      bodyBytes: config.requestBodyMb * MEGABYTE,
      linger: () => pause((config.drainSeconds ?? defaultDrainSeconds(config)) * 1_000),
    })
    startDraining = http.startDraining
    await limits.join()
    closers.unshift(
      () => http.close(),
      () => endDryRuns(dryRuns),
      () => usage.close(),
      () => renderer.close(),
      () => limits.leave(),
      () => email.rsaKeys.close(),
    )
    const address = await http.listen({ port: config.port, host: config.host })
    baseUrl ??= reachableAddress(address)
    email.rsaKeys.fill()
    const { mailListen } = config
    const name = config.providers.mail.helo
    const mail = mailListen && (await openMailListener(feedback, { mailListen, name }, log))
    if (mail) closers.unshift(() => mail.close())
    return { address, mailPort: mail?.port }
  }

  function work() {
    const db = guardWrites(workerDb, mayWrite)
    const directDb = guardWrites(pools.directDb, mayWrite)
    const parts = { db, clock, newId, merger: createMerger({ slots: mergeSlots(shares.jobs) }) }
    const { change } = createUsersContext(parts)
    const { publicUrl, providers } = config
    const email = createEmailContext({ ...forEmail, db })
    const mails = createMailChannels({
      email,
      clock,
      resolveMx: resolver.resolveMx,
      dial: outbound.dial,
      dialOwn: createDial({ route: providers.route, allow: EVERYWHERE }),
    })
    const renderer = createRenderer({ log, clock, processes: config.renderProcesses })
    const mail = mailParts({ secretKey, outbound, renderer })
    const feedback = createFeedbackContext({
      ...parts,
      secrets,
      change,
      readTwilio,
      publicUrl,
      sendWebhook,
      noteActions,
      readRunData: createReadRunData(db),
      mail,
    })
    const texts = createTextChannels({ feedback, outbound, twilioUrl: providers.twilioUrl, listener, log })
    const senders = createSenders({
      clock,
      providers,
      readPushCredentials: (appId) => readPushCredentials({ db: directDb, secrets }, appId),
      findTexts: texts.open,
      findMail: mails.open,
    })
    const engine = createEngine({
      db,
      directDb,
      scanAudience: createScanAudience(pools.audiences),
      clock,
      log,
      sender: senders,
      renderer,
      email: createEmailPort({
        ...{ email, clock, secretKey, mails, inboxProviders: config.inboxProviders },
        files: createFileFetcher({ outbound, clock, log, maxBytes: config.emailAttachmentsMb * MEGABYTE }),
      }),
      recordRunActions: noteActions,
      readRunData: createReadRunData(db),
      maxInFlight: config.maxInFlight,
    })
    metrics.gauge('carillon_deliveries', 'Deliveries of this process by provider and outcome.', engine.stats.read)
    metrics.gauge('carillon_deliveries_in_flight', 'Deliveries under way, slices that wait, the most at once.', () => {
      const { inFlight, waiting, most } = engine.slots.stats()
      return { in_flight: inFlight, waiting, most }
    })
    listenForCredentials()
    const { eventRetentionDays, deliveryRetentionDays } = config
    const sendMail = createSendMail(email, mails)
    const { journeyMinWaitSeconds: minWaitSeconds } = config
    const journeys = createJourneysContext({ ...parts, renderer, secrets, sendWebhook, minWaitSeconds })
    const runs = createRunsContext({ ...parts, log, renderer, engine })
    const context = { ...feedback, engine, email, sendMail, journeys, runs, eventRetentionDays, deliveryRetentionDays }
    const worker = createWorker({
      db: directDb,
      clock,
      log,
      listener,
      handlers: allHandlers(context),
      schedules: allSchedules(context),
    })
    worker.start()
    texts.start()
    closers.unshift(
      () => worker.stop(),
      () => senders.close(),
      () => texts.close(),
      () => mails.close(),
      () => renderer.close(),
    )
    log.info(
      { maxInFlight: config.maxInFlight },
      'sending: at most so many messages of a provider, or of an account or relay of an app, are under way at once',
    )

    function listenForCredentials() {
      const forget = (payload: string) => {
        const [what, appId] = payload.split(' ')
        if (what !== 'app' || appId === undefined) return
        senders.forget(appId)
        mails.forget(appId)
        resumeMisconfigured(engine, appId).catch((error) =>
          log.warn({ appId, reason: error.message }, 'a pause for bad credentials goes on until its time is over'),
        )
      }
      const forgetAll = () => {
        senders.forget()
        mails.forget()
      }
      listener.on(KEYS_CHANNEL, forget, forgetAll)
    }
  }
}

/** Segments, templates and in-app messages come before journeys and cannot know them: so they are told whether one is in use. */
const isUsedAs = (kind: ReferenceKind) => (db: Db, appId: AppId, id: string) => isUsedByLiveJourney(db, appId, kind, id)

const isAnchored = (clock: Clock & Partial<SystemClock>): clock is SystemClock => clock.anchor !== undefined
