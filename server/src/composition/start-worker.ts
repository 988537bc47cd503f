// The role that runs background jobs: channels to all providers, the delivery engine, journeys, and the queue that runs
// them.

import { openPushSettings } from '../apps/credentials/credentials.ts'
import { KEYS_CHANNEL } from '../apps/store.ts'
import { createDial } from '../channels/dial.ts'
import { createAttachmentFetcher } from '../channels/email/fetch-attachments.ts'
import { createRunsContext } from '../journeys/runs/context.ts'
import { createReadRunData, createRecordRunActions } from '../journeys/runs/ports.ts'
import { newId } from '../lib/ids.ts'
import { createEngine } from '../messages/engine/engine.ts'
import type { Engine } from '../messages/engine/types.ts'
import { resumeMisconfigured } from '../messages/release/resume.ts'
import { createWorker } from '../queue/work.ts'
import { createScanAudience } from '../segments/scan.ts'
import type { Db } from '../storage/db.ts'
import { guardWrites } from '../storage/guard-writes.ts'
import { createMerger } from '../storage/merge.ts'
import { createRenderer } from '../templates/render/renderer.ts'
import { createDomains, type Domains } from './domains.ts'
import { createMailChannels, type MailChannels } from './email-channels.ts'
import { createSendMail } from './email-notices.ts'
import { createEmailPort } from './email-port.ts'
import type { Infrastructure } from './infrastructure.ts'
import { allHandlers, allSchedules } from './jobs.ts'
import { createMessageChannels } from './message-channels.ts'
import { mergeSlots } from './pools.ts'
import { createSenders, type Senders } from './senders.ts'
import { createTextChannels, type TextChannels } from './sms-channels.ts'

const MEGABYTE = 1024 * 1024
/** The operator's own relay may be in any network. */
const EVERYWHERE = ['0.0.0.0/0', '::/0']

export function startWorker(infrastructure: Infrastructure, resources: AsyncDisposableStack): void {
  const { config, clock, log, pools, listener, mayWrite } = infrastructure
  const db = guardWrites(pools.workerDb, mayWrite)
  const directDb = guardWrites(pools.directDb, mayWrite)
  const merger = createMerger({ slots: mergeSlots(infrastructure.shares.jobs) })
  const renderer = createRenderer({ log, clock, processes: config.renderProcesses })
  resources.defer(() => renderer.close())
  const domains = createDomains({ ...infrastructure, db, newId, merger, renderer, counting: pools.counting })

  const channels = openChannels(infrastructure, domains, { directDb })
  resources.defer(() => channels.email.close())
  resources.defer(() => channels.sms.close())
  resources.defer(() => channels.senders.close())

  const engine = createEngine({
    db,
    directDb,
    scanAudience: createScanAudience(pools.audiences),
    clock,
    log,
    sender: channels.senders,
    renderer,
    channels: createMessageChannels(
      createEmailPort({
        ...{ email: domains.email, clock, secretKey: infrastructure.secretKey, mails: channels.email },
        inboxProviders: config.inboxProviders,
        files: createAttachmentFetcher({
          outbound: infrastructure.outbound,
          clock,
          log,
          maxBytes: config.emailAttachmentsMb * MEGABYTE,
        }),
      }),
    ),
    recordRunActions: createRecordRunActions({ clock, newId }),
    readRunData: createReadRunData(db),
    maxInFlight: config.maxInFlight,
  })
  publishDeliveryMetrics(infrastructure, engine)
  followCredentialChanges(infrastructure, channels, engine)

  const jobs = {
    ...domains.feedback,
    engine,
    email: domains.email,
    sendEmail: createSendMail(domains.email, channels.email),
    journeys: domains.journeys,
    runs: createRunsContext({ db, clock, newId, merger, log, renderer, engine }),
    eventRetentionDays: config.eventRetentionDays,
    deliveryRetentionDays: config.deliveryRetentionDays,
  }
  const worker = createWorker({
    db: directDb,
    clock,
    log,
    listener,
    handlers: allHandlers(jobs),
    schedules: allSchedules(jobs),
  })
  resources.defer(() => worker.stop())
  worker.start()
  channels.sms.start()
  log.info({ maxInFlight: config.maxInFlight }, 'Running background jobs')
}

type OpenChannels = { email: MailChannels; sms: TextChannels; senders: Senders }

function openChannels(
  { config, clock, log, listener, outbound, resolver, secrets }: Infrastructure,
  domains: Domains,
  { directDb }: { directDb: Db },
): OpenChannels {
  const { providers } = config
  const email = createMailChannels({
    email: domains.email,
    clock,
    resolveMx: resolver.resolveMx,
    dial: outbound.dial,
    dialOwn: createDial({ route: providers.route, allow: EVERYWHERE }),
  })
  const sms = createTextChannels({
    feedback: domains.feedback,
    outbound,
    twilioUrl: providers.twilioUrl,
    listener,
    log,
  })
  const senders = createSenders({
    clock,
    providers,
    openPushSettings: (appId) => openPushSettings({ db: directDb, secrets }, appId),
    findTexts: sms.open,
    findMail: email.open,
  })
  return { email, sms, senders }
}

function publishDeliveryMetrics({ metrics }: Infrastructure, engine: Engine): void {
  metrics.gauge('carillon_deliveries', 'Deliveries of this process by provider and outcome.', engine.stats.read)
  metrics.gauge(
    'carillon_deliveries_in_flight',
    'Deliveries in flight, batches waiting, and the limit per app and provider.',
    () => {
      const { inFlight, waiting, most } = engine.slots.stats()
      return { in_flight: inFlight, waiting, most }
    },
  )
}

/** Makes new credentials of an app take effect at once, here and on every other worker. */
function followCredentialChanges({ listener, log }: Infrastructure, channels: OpenChannels, engine: Engine): void {
  function invalidateApp(payload: string) {
    const [what, appId] = payload.split(' ')
    if (what !== 'app' || appId === undefined) return
    channels.senders.invalidateCredentials(appId)
    channels.email.forget(appId)
    resumeMisconfigured(engine, appId).catch((error) =>
      log.warn({ appId, reason: error.message }, 'Could not end the pause for refused credentials; it ends by itself'),
    )
  }
  function invalidateAll() {
    channels.senders.invalidateCredentials()
    channels.email.forget()
  }
  listener.on(KEYS_CHANNEL, invalidateApp, invalidateAll)
}
