// Every route of the server. The kit adds its own: health, readiness, metrics, the description and its page.

import type { EventsContext } from './events/context.ts'
import { eventRoutes } from './events/routes.ts'
import type { Route } from './http/route.ts'
import type { SegmentsContext } from './segments/context.ts'
import { segmentRoutes } from './segments/routes.ts'
import type { UsersContext } from './users/context.ts'
import { playerRoutes } from './users/player-routes.ts'
import { userRoutes } from './users/routes.ts'

export type RoutesContext = { users: UsersContext; events: EventsContext; segments: SegmentsContext }

export const allRoutes = ({ users, events, segments }: RoutesContext): Route[] => [
  ...userRoutes(users),
  ...playerRoutes(users),
  ...eventRoutes(events),
  ...segmentRoutes(segments),
]
