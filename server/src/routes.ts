// Every route of the server. The kit adds its own: health, readiness, metrics, the description and its page.

import { auditRoutes } from './apps/audit-routes.ts'
import type { AppsContext } from './apps/context.ts'
import { keyRoutes } from './apps/key-routes.ts'
import { appRoutes } from './apps/routes.ts'
import type { EventsContext } from './events/context.ts'
import { eventRoutes } from './events/routes.ts'
import type { Route } from './http/route.ts'
import type { SegmentsContext } from './segments/context.ts'
import { segmentRoutes } from './segments/routes.ts'
import type { TemplatesContext } from './templates/context.ts'
import { templateRoutes } from './templates/routes.ts'
import type { UsersContext } from './users/context.ts'
import { playerRoutes } from './users/player-routes.ts'
import { userRoutes } from './users/routes.ts'

export type RoutesContext = {
  apps: AppsContext
  users: UsersContext
  events: EventsContext
  segments: SegmentsContext
  templates: TemplatesContext
}

export const allRoutes = ({ apps, users, events, segments, templates }: RoutesContext): Route[] => [
  ...userRoutes(users),
  ...playerRoutes(users),
  ...eventRoutes(events),
  ...segmentRoutes(segments),
  ...templateRoutes(templates),
  ...appRoutes(apps),
  ...keyRoutes(apps),
  ...auditRoutes(apps),
]
