// Every route of the server. The kit adds its own: health, readiness, metrics, the description and its page.

import { auditRoutes } from '../apps/audit/routes.ts'
import type { AppsContext } from '../apps/context.ts'
import { keyRoutes } from '../apps/keys/routes.ts'
import { appRoutes } from '../apps/routes.ts'
import { smsRoutes } from '../apps/sms/routes.ts'
import type { EmailContext } from '../email/context.ts'
import { domainRoutes } from '../email/domains/routes.ts'
import { mailboxRoutes } from '../email/mailbox/routes.ts'
import { emailMetricsRoutes } from '../email/metrics/routes.ts'
import { emailSettingsRoutes } from '../email/settings/routes.ts'
import { suppressionRoutes } from '../email/suppressions/routes.ts'
import type { EventsContext } from '../events/context.ts'
import { eventRoutes } from '../events/routes.ts'
import type { ExportsContext } from '../exports/context.ts'
import { exportRoutes } from '../exports/routes.ts'
import type { FeedbackContext } from '../feedback/context.ts'
import { eventSourceRoutes } from '../feedback/email/sources/routes.ts'
import { trackingRoutes } from '../feedback/email/tracking-routes.ts'
import { unsubscribeRoutes } from '../feedback/email/unsubscribe-routes.ts'
import { reportRoutes as deviceReportRoutes } from '../feedback/report-routes.ts'
import { twilioRoutes } from '../feedback/twilio-routes.ts'
import { webhookRoutes } from '../feedback/webhook-routes.ts'
import type { Route } from '../http/route.ts'
import type { InAppContext } from '../in-app/context.ts'
import { inAppRoutes } from '../in-app/routes.ts'
import { inAppSdkRoutes } from '../in-app/sdk-routes.ts'
import type { JourneysContext } from '../journeys/context.ts'
import { dryRunRoutes } from '../journeys/dry-run/routes.ts'
import type { DryRunContext } from '../journeys/dry-run/simulate.ts'
import { journeyRoutes } from '../journeys/routes.ts'
import { journeyWebhookRoutes } from '../journeys/webhooks/routes.ts'
import type { ActivitiesContext } from '../messages/activities/context.ts'
import { activityRoutes } from '../messages/activities/routes.ts'
import type { MessagesContext } from '../messages/context.ts'
import { messageRoutes } from '../messages/routes.ts'
import type { OutcomesContext } from '../outcomes/context.ts'
import { outcomeRoutes } from '../outcomes/routes.ts'
import type { ReportsContext } from '../reports/context.ts'
import { reportRoutes } from '../reports/routes.ts'
import type { SdkContext } from '../sdk/context.ts'
import { sdkFileRoutes } from '../sdk/file-routes.ts'
import { sdkRoutes } from '../sdk/routes.ts'
import type { SegmentsContext } from '../segments/context.ts'
import { segmentRoutes } from '../segments/routes.ts'
import type { SendingContext } from '../sending/context.ts'
import { sendingRoutes } from '../sending/routes.ts'
import type { TemplatesContext } from '../templates/context.ts'
import { templateRoutes } from '../templates/routes.ts'
import type { UsersContext } from '../users/context.ts'
import { playerRoutes } from '../users/players/routes.ts'
import { userRoutes } from '../users/routes.ts'
import { withExample } from './examples.ts'

export type RoutesContext = {
  apps: AppsContext
  users: UsersContext
  events: EventsContext
  segments: SegmentsContext
  templates: TemplatesContext
  outcomes: OutcomesContext
  reports: ReportsContext
  exports: ExportsContext
  sending: SendingContext
  email: EmailContext
  messages: MessagesContext
  activities: ActivitiesContext
  inApp: InAppContext
  feedback: FeedbackContext
  journeys: JourneysContext
  dryRuns: DryRunContext
  sdk: SdkContext
}

export const allRoutes = (ctx: RoutesContext): Route[] => listRoutes(ctx).map(withExample)

const listRoutes = ({
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
  sdk,
}: RoutesContext): Route[] => [
  ...userRoutes(users),
  ...playerRoutes(users),
  ...eventRoutes(events),
  ...segmentRoutes(segments),
  ...templateRoutes(templates),
  ...outcomeRoutes(outcomes),
  ...reportRoutes(reports),
  ...exportRoutes(exports),
  ...sendingRoutes(sending),
  ...emailSettingsRoutes(email),
  ...domainRoutes(email),
  ...suppressionRoutes(email),
  ...mailboxRoutes(email),
  ...emailMetricsRoutes(email),
  ...messageRoutes(messages),
  ...activityRoutes(activities),
  ...inAppRoutes(inApp),
  ...inAppSdkRoutes(inApp),
  ...deviceReportRoutes(feedback),
  ...twilioRoutes(feedback),
  ...webhookRoutes(feedback),
  ...journeyRoutes(journeys),
  ...dryRunRoutes(dryRuns),
  ...journeyWebhookRoutes(journeys),
  ...trackingRoutes(feedback),
  ...unsubscribeRoutes(feedback),
  ...eventSourceRoutes(feedback),
  ...appRoutes(apps),
  ...smsRoutes(apps),
  ...keyRoutes(apps),
  ...auditRoutes(apps),
  ...sdkRoutes(sdk),
  ...sdkFileRoutes(sdk),
]
