// Every route of the server, except those that the HTTP layer adds: health, readiness, metrics, the OpenAPI description
// and its page.

import { auditRoutes } from '../apps/audit/routes.ts'
import { keyRoutes } from '../apps/keys/routes.ts'
import { appRoutes } from '../apps/routes.ts'
import { smsRoutes } from '../apps/sms/routes.ts'
import { domainRoutes } from '../email/domains/routes.ts'
import { mailboxRoutes } from '../email/mailbox/routes.ts'
import { emailMetricsRoutes } from '../email/metrics/routes.ts'
import { emailSettingsRoutes } from '../email/settings/routes.ts'
import { suppressionRoutes } from '../email/suppressions/routes.ts'
import { eventRoutes } from '../events/routes.ts'
import { exportRoutes } from '../exports/routes.ts'
import { eventSourceRoutes } from '../feedback/email/sources/routes.ts'
import { trackingRoutes } from '../feedback/email/tracking-routes.ts'
import { unsubscribeRoutes } from '../feedback/email/unsubscribe-routes.ts'
import { reportRoutes as deviceReportRoutes } from '../feedback/report-routes.ts'
import { twilioRoutes } from '../feedback/twilio-routes.ts'
import { webhookRoutes } from '../feedback/webhook-routes.ts'
import type { Route } from '../http/route.ts'
import { inAppRoutes } from '../in-app/routes.ts'
import { inAppSdkRoutes } from '../in-app/sdk-routes.ts'
import { dryRunRoutes } from '../journeys/dry-run/routes.ts'
import { journeyRoutes } from '../journeys/routes.ts'
import { journeyWebhookRoutes } from '../journeys/webhooks/routes.ts'
import { activityRoutes } from '../messages/activities/routes.ts'
import { messageRoutes } from '../messages/routes.ts'
import { outcomeRoutes } from '../outcomes/routes.ts'
import { reportRoutes } from '../reports/routes.ts'
import { sdkFileRoutes } from '../sdk/file-routes.ts'
import { sdkRoutes } from '../sdk/routes.ts'
import { segmentRoutes } from '../segments/routes.ts'
import { sendingRoutes } from '../sending/routes.ts'
import { templateRoutes } from '../templates/routes.ts'
import { playerRoutes } from '../users/players/routes.ts'
import { userRoutes } from '../users/routes.ts'
import type { Domains } from './domains.ts'
import { withExample } from './examples.ts'

export const allRoutes = (domains: Domains): Route[] => listRoutes(domains).map(withExample)

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
}: Domains): Route[] => [
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
