import { findApp, findOrganizationName } from '../apps/store.ts'
import type { AppId } from '../lib/ids.ts'
import type { Db } from '../storage/db.ts'
import type { LiquidScopeParts } from './liquid-scope.ts'

/** In whose name something is said, as Liquid sees it. */
export type AppScope = Pick<LiquidScopeParts, 'app' | 'organization'>

/** Undefined where there is no such app. */
export async function findAppScope(db: Db, appId: AppId): Promise<AppScope | undefined> {
  const app = await findApp(db, appId)
  if (!app) return undefined
  const { organizationId } = app
  const name = (await findOrganizationName(db, organizationId)) ?? ''
  return { app: { id: appId, name: app.name }, organization: { id: organizationId, name } }
}
