// Every route of the server. The kit adds its own: health, readiness, metrics, the description and its page.

import type { Route } from './http/route.ts'
import type { TemplatesContext } from './templates/context.ts'
import { templateRoutes } from './templates/routes.ts'
import type { UsersContext } from './users/context.ts'
import { playerRoutes } from './users/player-routes.ts'
import { userRoutes } from './users/routes.ts'

export type RoutesContext = { users: UsersContext; templates: TemplatesContext }

export const allRoutes = ({ users, templates }: RoutesContext): Route[] => [
  ...userRoutes(users),
  ...templateRoutes(templates),
  ...playerRoutes(users),
]
