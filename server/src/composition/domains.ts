// Creates the contexts of all domains in one place, from the parts that differ between the API, the worker and the
// declaration of routes.

import type { AppsContext } from '../apps/context.ts'
import type { ConfigureNew } from '../apps/create.ts'
import type { Outbound } from '../channels/outbound.ts'
import { isPublicAddress } from '../channels/public-address.ts'
import { createEmailContext, type EmailContext, type EmailResolver } from '../email/context.ts'
import { createEventsContext, type EventsContext } from '../events/context.ts'
import { createExportsContext, type ExportsContext } from '../exports/context.ts'
import { createFeedbackContext, type FeedbackContext } from '../feedback/context.ts'
import { createInAppContext, type InAppContext } from '../in-app/context.ts'
import { createJourneysContext, type JourneysContext } from '../journeys/context.ts'
import type { ReferenceKind } from '../journeys/document/reading.ts'
import { createDryRunContext, type DryRunContext } from '../journeys/dry-run/simulate.ts'
import { createReadRunData, createRecordRunActions } from '../journeys/runs/ports.ts'
import { isUsedByLiveJourney } from '../journeys/store.ts'
import type { Clock } from '../lib/clock.ts'
import type { AppId, NewId } from '../lib/ids.ts'
import { addressList } from '../lib/networks.ts'
import { secretBox } from '../lib/secrets.ts'
import { type ActivitiesContext, createActivitiesContext } from '../messages/activities/context.ts'
import { createMessagesContext, type MessagesContext } from '../messages/context.ts'
import { createOutcomesContext, type OutcomesContext } from '../outcomes/context.ts'
import { createReportsContext, type ReportsContext } from '../reports/context.ts'
import type { SdkContext } from '../sdk/context.ts'
import { createSegmentsContext, type SegmentsContext } from '../segments/context.ts'
import { createSendingContext, type SendingContext } from '../sending/context.ts'
import type { SendWebhook } from '../sending/send-notice.ts'
import type { Config } from '../settings/config.ts'
import type { Db, PoolOptions } from '../storage/db.ts'
import type { Merger } from '../storage/merge.ts'
import type { SharedPool } from '../storage/shared-pool.ts'
import { createTemplatesContext, type TemplatesContext } from '../templates/context.ts'
import type { Renderer } from '../templates/render/renderer.ts'
import { createUsersContext, type UsersContext } from '../users/context.ts'
import { sumPlayerCounts } from '../users/count-store.ts'
import { findAppsWithAddresses } from '../users/subscriptions/address-store.ts'
import { mailParts } from './inbound-email.ts'
import { readTwilioWebhook } from './read-twilio-callback.ts'

export type DomainParts = {
  config: Config
  db: Db
  clock: Clock
  newId: NewId
  merger: Merger
  secretKey: string
  renderer: Renderer
  /** For requests that read every user of an app. */
  counting: SharedPool
  /** Dry runs connect to the database from their own thread. */
  connection: PoolOptions['connection']
  outbound: Pick<Outbound, 'request'>
  sendWebhook: SendWebhook
  resolver: EmailResolver
  configureNew?: ConfigureNew | undefined
  spareRsaKeys?: number | undefined
  /** Only the API has these: the address it listens on, and the uses of keys that are not written yet. */
  baseUrl?: (() => string) | undefined
  keyUsage?: AppsContext['usage'] | undefined
}

export type Domains = {
  apps: AppsContext
  users: UsersContext
  events: EventsContext
  segments: SegmentsContext
  templates: TemplatesContext
  sending: SendingContext
  email: EmailContext
  outcomes: OutcomesContext
  messages: MessagesContext
  activities: ActivitiesContext
  inApp: InAppContext
  reports: ReportsContext
  exports: ExportsContext
  feedback: FeedbackContext
  journeys: JourneysContext
  dryRuns: DryRunContext
  sdk: SdkContext
}

export function createDomains(parts: DomainParts): Domains {
  const { config, db, clock, newId, merger, secretKey, renderer, counting, connection, outbound, sendWebhook } = parts
  const { publicUrl } = config
  const common = { db, clock, newId, merger, secrets: secretBox(secretKey) }
  const mayAttach = config.emailAttachmentsMb > 0

  const apps: AppsContext = {
    ...common,
    configureNew: parts.configureNew,
    defaultPlan: config.defaultPlan,
    usage: parts.keyUsage ?? { flush: async () => {} },
    publicUrl,
    countPlayers: (appIds) => sumPlayerCounts(db, appIds),
    findAppsWithAddresses: (appIds) => findAppsWithAddresses(db, appIds),
  }
  const users = createUsersContext(common)
  const { reader } = users
  const segments = createSegmentsContext({ ...common, reader, counting, isUsed: isUsedByJourneyAs('segment') })
  const messages = createMessagesContext({ ...common, users, segments, renderer, mayAttach })
  const feedback = createFeedbackContext({
    ...common,
    change: users.change,
    readTwilioWebhook,
    publicUrl,
    sendWebhook,
    recordRunActions: createRecordRunActions({ clock, newId }),
    readRunData: createReadRunData(db),
    emailFeedback: mailParts({ secretKey, outbound, renderer }),
  })

  return {
    apps,
    users,
    events: createEventsContext({ ...common, reader, retentionDays: config.eventRetentionDays }),
    segments,
    templates: createTemplatesContext({
      ...common,
      renderer,
      users: reader,
      isUsed: isUsedByJourneyAs('template'),
      mayAttach,
    }),
    sending: createSendingContext(common),
    email: createEmailContext({
      ...common,
      resolver: parts.resolver,
      serverEmail: config.providers.email,
      publicUrl,
      port: config.port,
      mayReach: createMayReach(config.providers.outbound.allow ?? []),
      spareRsaKeys: parts.spareRsaKeys,
    }),
    outcomes: createOutcomesContext(common),
    messages,
    activities: createActivitiesContext({ ...common, reader, messages, recordFeedback: feedback.recordFeedback }),
    inApp: createInAppContext({ ...common, renderer, users: reader, isUsed: isUsedByJourneyAs('iam') }),
    reports: createReportsContext({ ...common, segments, reader }),
    exports: createExportsContext({ ...common, segments, baseUrl: parts.baseUrl ?? (() => publicUrl ?? '') }),
    feedback,
    journeys: createJourneysContext({
      ...common,
      renderer,
      sendWebhook,
      minWaitSeconds: config.journeyMinWaitSeconds,
    }),
    dryRuns: createDryRunContext({ db, connection }),
    sdk: apps,
  }
}

/**
 * Segments, templates and in-app messages must not depend on journeys, so they receive this check for whether a journey
 * uses one.
 */
const isUsedByJourneyAs = (kind: ReferenceKind) => (db: Db, appId: AppId, id: string) =>
  isUsedByLiveJourney(db, appId, kind, id)

function createMayReach(allowedNetworks: readonly string[]): EmailContext['mayReach'] {
  const allowed = addressList(allowedNetworks)
  return (address) => isPublicAddress(address) || allowed.includes(address)
}
